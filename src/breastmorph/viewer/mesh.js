/* One mesh of the view: its arrays, what the graphics card has of them, and how it looks. */
"use strict";

const BreastMesh = (() => {
  const STYLE = {
    colour: "#d8bfae", opacity: 1, visible: true, offset: [0, 0, 0], pickable: true, flat: false, inside: true,
  };
  // Colours are light-linear in the shader; given are sRGB values of 0 to 255.
  const LINEAR = Float32Array.from({ length: 256 }, (_, i) =>
    i / 255 <= 0.04045 ? i / 255 / 12.92 : ((i / 255 + 0.055) / 1.055) ** 2.4);

  /* What the usual shading lacks. The inside of the skin is grey: a torso seen from behind must not be taken for
     its front. And colours that stand for numbers can be shaded less, to be compared with the colour bar. */
  function extendShading(material) {
    const amounts = { greyInside: { value: 0 }, unshaded: { value: 0 } };
    const additions = [
      ["#include <color_fragment>", "after",
        "if (!gl_FrontFacing) diffuseColor.rgb = mix(diffuseColor.rgb, vec3(0.33), greyInside);"],
      ["#include <opaque_fragment>", "before", "outgoingLight = mix(outgoingLight, diffuseColor.rgb, unshaded);"],
    ];
    material.onBeforeCompile = shader => {
      Object.assign(shader.uniforms, amounts);
      let code = `uniform float greyInside;\nuniform float unshaded;\n${shader.fragmentShader}`;
      for (const [place, side, line] of additions) {
        code = code.replace(place, side === "after" ? `${place}\n${line}` : `${line}\n${place}`);
      }
      shader.fragmentShader = code;
    };
    return amounts;
  }

  class Mesh {
    constructor(scene, name, positions, faces, style = STYLE) {
      this.scene = scene;
      this.name = name;
      this.positions = Float32Array.from(positions);
      this.faces = Uint32Array.from(faces);
      if (this.faces.some(vertex => 3 * vertex + 2 >= this.positions.length)) {
        throw new Error(`${name}: a face names a vertex that is not there`);
      }
      this.normals = new Float32Array(this.positions.length);
      this.style = style;
      this.colours = this.texture = this.geometry = this.object = this.depth = null;
      this.split = false;  // each face has corners of its own, as a texture with seams needs it
      this.material = new THREE.MeshPhongMaterial({ side: THREE.DoubleSide, shininess: 18 });
      this.amounts = extendShading(this.material);
      // A transparent surface first writes its depth alone: else its own far side shines through in patches.
      this.depthMaterial = new THREE.MeshBasicMaterial(
        { side: THREE.DoubleSide, colorWrite: false, transparent: true });
      this.build();
    }

    setPositions(positions) {
      if (positions.length !== this.positions.length) {
        throw new Error(`${this.name} has ${this.positions.length / 3} vertices, not ${positions.length / 3}`);
      }
      this.positions.set(positions);
      this.upload();
    }

    setColours(colours) {
      if (!colours) {
        this.colours = null;
        this.geometry.deleteAttribute("color");
      } else {
        if (colours.length !== this.positions.length) {
          throw new Error(`${this.name} needs ${this.positions.length} colour values, not ${colours.length}`);
        }
        this.colours ??= new Float32Array(colours.length);
        const scale = colours instanceof Float32Array ? 255 : 1;
        for (let i = 0; i < colours.length; i++) this.colours[i] = LINEAR[(colours[i] * scale + 0.5) | 0];
        this.uploadColours();
      }
      this.paint();
    }

    setTexture(uv, image) {
      this.texture?.dispose();
      this.texture = null;
      if (image) {
        const split = uv.length === 2 * this.faces.length;
        if (!split && uv.length * 3 !== this.positions.length * 2) {
          throw new Error(`${this.name}: uv fit neither vertices nor corners`);
        }
        this.texture = new THREE.Texture(image);
        this.texture.colorSpace = THREE.SRGBColorSpace;
        this.texture.anisotropy = 4;
        this.texture.needsUpdate = true;
        if (split !== this.split) {
          this.split = split;
          this.build();
        }
        this.geometry.setAttribute("uv", new THREE.BufferAttribute(Float32Array.from(uv), 2));
      }
      this.paint();
    }

    setStyle(style) {
      this.style = { ...this.style, ...style };
      this.paint();
    }

    /* Make the geometry anew. */
    build() {
      this.takeOut();
      const geometry = this.geometry = new THREE.BufferGeometry();
      for (const [name, values] of [["position", this.positions], ["normal", this.normals]]) {
        const shown = this.split ? new Float32Array(3 * this.faces.length) : values;
        geometry.setAttribute(name, new THREE.BufferAttribute(shown, 3));
      }
      if (!this.split) geometry.setIndex(new THREE.BufferAttribute(this.faces, 1));
      this.object = new THREE.Mesh(geometry, this.material);
      this.depth = new THREE.Mesh(geometry, this.depthMaterial);
      this.depth.renderOrder = 1;
      this.object.renderOrder = 2;
      // Else a bounding sphere would have to follow every slider.
      this.object.frustumCulled = this.depth.frustumCulled = false;
      this.scene.add(this.depth, this.object);
      this.upload();
      if (this.colours) this.uploadColours();
      this.paint();
    }

    upload() {
      BreastSurface.normals(this.positions, this.faces, this.normals);
      for (const [name, values] of [["position", this.positions], ["normal", this.normals]]) {
        const attribute = this.geometry.getAttribute(name);
        if (this.split) BreastSurface.perCorner(values, this.faces, 3, attribute.array);
        attribute.needsUpdate = true;
      }
    }

    uploadColours() {
      const values = this.split ? BreastSurface.perCorner(this.colours, this.faces, 3) : this.colours;
      const attribute = this.geometry.getAttribute("color");
      if (attribute) {
        attribute.array.set(values);
        attribute.needsUpdate = true;
      } else {
        this.geometry.setAttribute("color", new THREE.BufferAttribute(Float32Array.from(values), 3));
      }
    }

    paint() {
      const { colour, opacity, visible, offset, flat, inside } = this.style, material = this.material;
      const photo = this.texture && !this.colours ? this.texture : null, solid = opacity >= 1;
      const own = photo && flat;  // a photograph has its own light and shade
      const changed = material.map !== photo || material.vertexColors !== Boolean(this.colours)
        || material.transparent === solid || (material.emissiveMap !== null) !== Boolean(own);
      material.map = photo;
      material.emissiveMap = own ? photo : null;
      material.emissive.set(own ? "#ffffff" : "#000000");
      material.vertexColors = Boolean(this.colours);
      material.transparent = !solid;
      material.opacity = opacity;
      // Where a see-through surface lies exactly on another one, the solid one is seen, not a patchwork of both.
      for (const one of [material, this.depthMaterial]) {
        Object.assign(one, { polygonOffset: !solid, polygonOffsetFactor: 1, polygonOffsetUnits: 4 });
      }
      material.color.set(own ? "#000000" : this.colours || photo ? "#ffffff" : colour);
      material.specular.set(photo ? 0x000000 : 0x1c1c1c);
      this.amounts.greyInside.value = inside ? 0.75 : 0;
      this.amounts.unshaded.value = this.colours ? 0.5 : 0;
      if (changed) material.needsUpdate = true;
      for (const object of [this.object, this.depth]) object.position.fromArray(offset);
      this.object.visible = visible;
      this.depth.visible = visible && !solid;
    }

    /* The first point of the mesh on a ray, or null. */
    hit(origin, direction) {
      const [x, y, z] = this.style.offset;
      return BreastSurface.hit(this.positions, this.faces,
        [origin.x - x, origin.y - y, origin.z - z], [direction.x, direction.y, direction.z]);
    }

    takeOut() {
      if (this.object) this.scene.remove(this.object, this.depth);
      this.geometry?.dispose();
    }

    dispose() {
      this.takeOut();
      [this.material, this.depthMaterial, this.texture].forEach(thing => thing?.dispose());
    }
  }

  return { Mesh };
})();
