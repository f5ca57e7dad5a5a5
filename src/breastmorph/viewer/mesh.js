/* One mesh of the view: its arrays, what the graphics card has of them, and how it looks. */
"use strict";

const BreastMesh = (() => {
  const STYLE = { colour: "#d8bfae", opacity: 1, visible: true, offset: [0, 0, 0], pickable: true };
  // Colours are light-linear in the shader; given are sRGB values of 0 to 255.
  const LINEAR = Float32Array.from({ length: 256 }, (_, i) =>
    i / 255 <= 0.04045 ? i / 255 / 12.92 : ((i / 255 + 0.055) / 1.055) ** 2.4);

  /* What the usual shading lacks. The inside of the skin is grey: a torso seen from behind must not be taken for
     its front. And colours that stand for numbers can be shaded less, to be compared with the colour bar. */
  function extendShading(material) {
    const unshaded = { value: 0 };
    const additions = [
      ["#include <color_fragment>", "after",
        "if (!gl_FrontFacing) diffuseColor.rgb = mix(diffuseColor.rgb, vec3(0.33), 0.75);"],
      ["#include <opaque_fragment>", "before", "outgoingLight = mix(outgoingLight, diffuseColor.rgb, unshaded);"],
    ];
    material.onBeforeCompile = shader => {
      shader.uniforms.unshaded = unshaded;
      let code = `uniform float unshaded;\n${shader.fragmentShader}`;
      for (const [place, side, line] of additions) {
        code = code.replace(place, side === "after" ? `${place}\n${line}` : `${line}\n${place}`);
      }
      shader.fragmentShader = code;
    };
    return unshaded;
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
      this.material = new THREE.MeshPhongMaterial({ side: THREE.DoubleSide, shininess: 18 });
      this.unshaded = extendShading(this.material);
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

    setColours(colours, photo = false) {
      this.photo = photo;
      if (!colours) {
        this.colours = null;
        this.geometry.deleteAttribute("color");
      } else {
        if (colours.length !== this.positions.length) {
          throw new Error(`${this.name} needs ${this.positions.length} colour values, not ${colours.length}`);
        }
        if (!this.colours) {
          this.colours = new Float32Array(colours.length);
          this.geometry.setAttribute("color", new THREE.BufferAttribute(this.colours, 3));
        }
        for (let i = 0; i < colours.length; i++) this.colours[i] = LINEAR[colours[i]];
        this.geometry.getAttribute("color").needsUpdate = true;
      }
      this.paint();
    }

    setTexture(uv, image) {
      if (uv.length * 3 !== this.positions.length * 2) throw new Error(`${this.name}: uv do not fit the vertices`);
      this.texture?.dispose();
      this.texture = new THREE.Texture(image);
      this.texture.colorSpace = THREE.SRGBColorSpace;
      this.texture.anisotropy = 4;
      this.texture.needsUpdate = true;
      this.geometry.setAttribute("uv", new THREE.BufferAttribute(Float32Array.from(uv), 2));
      this.paint();
    }

    setStyle(style) {
      this.style = { ...this.style, ...style };
      this.paint();
    }

    build() {
      const geometry = this.geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(this.positions, 3));
      geometry.setAttribute("normal", new THREE.BufferAttribute(this.normals, 3));
      geometry.setIndex(new THREE.BufferAttribute(BreastSurface.inOrder(this.positions, this.faces), 1));
      this.object = new THREE.Mesh(geometry, this.material);
      this.depth = new THREE.Mesh(geometry, this.depthMaterial);
      this.depth.renderOrder = 1;
      this.object.renderOrder = 2;
      // Else a bounding sphere would have to follow every slider.
      this.object.frustumCulled = this.depth.frustumCulled = false;
      this.scene.add(this.depth, this.object);
      this.upload();
      this.paint();
    }

    upload() {
      BreastSurface.normals(this.positions, this.faces, this.normals);
      for (const name of ["position", "normal"]) this.geometry.getAttribute(name).needsUpdate = true;
    }

    paint() {
      const { colour, opacity, visible, offset } = this.style, material = this.material;
      const photo = this.texture && !this.colours ? this.texture : null, solid = opacity >= 1;
      const changed = material.map !== photo || material.vertexColors !== Boolean(this.colours)
        || material.transparent === solid;
      material.map = photo;
      material.vertexColors = Boolean(this.colours);
      material.transparent = !solid;
      material.opacity = opacity;
      // Where a see-through surface lies exactly on another one, the solid one is seen, not a patchwork of both.
      for (const one of [material, this.depthMaterial]) {
        Object.assign(one, { polygonOffset: !solid, polygonOffsetFactor: 1, polygonOffsetUnits: 4 });
      }
      material.color.set(this.colours || photo ? "#ffffff" : colour);
      // Dark skin shows its shape by what shines on it.
      material.specular.set(photo || (this.colours && this.photo) ? 0x282828 : 0x1c1c1c);
      this.unshaded.value = this.colours && !this.photo ? 0.5 : 0;
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

    dispose() {
      this.scene.remove(this.object, this.depth);
      [this.geometry, this.material, this.depthMaterial, this.texture].forEach(thing => thing?.dispose());
    }
  }

  return { Mesh };
})();
