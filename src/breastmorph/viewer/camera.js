/* The camera of the view: where it stands, what it sees, and the lights that go with it. */
"use strict";

const BreastCamera = (() => {
  const RADIANS = Math.PI / 180, FIELD = 22;  // degrees that the picture is high
  const PRESETS = {  // degrees to the patient's left, degrees up
    front: [0, 0], left: [90, 0], right: [-90, 0], "oblique-left": [40, 0], "oblique-right": [-40, 0],
    below: [0, -55],
  };
  const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

  class Camera {
    constructor() {
      this.lens = new THREE.PerspectiveCamera(FIELD, 1, 1, 1e5);
      this.target = new THREE.Vector3();
      this.limits = [0, Infinity];  // nearest and farthest distance to the target
      this.resting = true;          // still where fit() put it
      // Lit from the upper left of the screen in every view, as in a photo studio.
      this.lens.add(this.light(2.3, -0.75, 0.85, 0.65), this.light(0.55, 1.0, 0.0, 0.6));
      this.stand(0, 0);
    }

    light(strength, x, y, z) {
      const light = new THREE.DirectionalLight(0xffffff, strength);
      light.position.set(x, y, z);
      light.target = this.lens;  // parallel light: only the direction counts
      return light;
    }

    /* Stand in a direction from the target: degrees to the patient's left and up. */
    stand(turn, up) {
      const length = this.lens.position.distanceTo(this.target) || 1000, [a, b] = [turn * RADIANS, up * RADIANS];
      this.lens.position.set(Math.cos(b) * Math.sin(a), Math.sin(b), Math.cos(b) * Math.cos(a))
        .multiplyScalar(length).add(this.target);
      this.look();
    }

    look() {
      this.lens.lookAt(this.target);
      this.lens.updateMatrixWorld();
    }

    axis(column) { return new THREE.Vector3().setFromMatrixColumn(this.lens.matrixWorld, column); }

    /* Stand so far away that all boxes [[low x, y, z], [high x, y, z]] are in the picture. */
    fit(boxes) {
      if (!boxes.length) return;
      const corners = boxes.flatMap(box => Array.from({ length: 8 }, (_, k) =>
        new THREE.Vector3(...[0, 1, 2].map(axis => box[(k >> axis) & 1][axis]))));
      const all = new THREE.Box3().setFromPoints(corners), size = all.getSize(new THREE.Vector3()).length() || 1;
      const away = this.axis(2), right = this.axis(0), above = this.axis(1);
      all.getCenter(this.target);
      const high = Math.tan(this.lens.fov * RADIANS / 2) * 0.9;
      const wide = 0.88 * high * this.lens.aspect;  // the colour bar stands at the side
      let distance = size / 10;
      for (const corner of corners) {
        corner.sub(this.target);
        distance = Math.max(distance, corner.dot(away) + Math.max(
          Math.abs(corner.dot(right)) / wide, Math.abs(corner.dot(above)) / high));
      }
      this.limits = [size / 20, 6 * size];
      this.lens.near = size / 200;
      this.lens.far = distance + 20 * size;
      this.lens.updateProjectionMatrix();
      this.lens.position.copy(this.target).addScaledVector(away, distance);
      this.resting = true;
      this.look();
    }

    /* Turn (degrees), go nearer (factor), shift the picture (in parts of its height). */
    move({ turn = 0, up = 0, nearer = 1, shift = [0, 0] }) {
      const arm = this.lens.position.clone().sub(this.target), reach = arm.length();
      const length = Math.min(Math.max(reach / nearer, this.limits[0]), this.limits[1]);
      const around = Math.atan2(arm.x, arm.z) + turn * RADIANS;
      const polar = Math.min(Math.max(Math.acos(arm.y / reach) - up * RADIANS, 0.02), Math.PI - 0.02);
      arm.set(Math.sin(polar) * Math.sin(around), Math.cos(polar), Math.sin(polar) * Math.cos(around))
        .multiplyScalar(length);
      const step = -2 * length * Math.tan(this.lens.fov * RADIANS / 2);
      this.target.addScaledVector(this.axis(0), shift[0] * step).addScaledVector(this.axis(1), shift[1] * step);
      this.lens.position.copy(this.target).add(arm);
      this.resting = false;
      this.look();
    }

    /* Move as a key asks for; false for keys that mean nothing here. */
    key(event) {
      const arrow = KEYS[event.key];
      if (event.ctrlKey || event.altKey || event.metaKey) return false;
      if (arrow && event.shiftKey) this.move({ shift: arrow.map(part => 0.05 * part) });
      else if (arrow) this.move({ turn: -10 * arrow[0], up: -10 * arrow[1] });
      else if (event.key === "+" || event.key === "=") this.move({ nearer: 1.15 });
      else if (event.key === "-") this.move({ nearer: 1 / 1.15 });
      else return false;
      return true;
    }

    /* The ray through a point of the picture, both coordinates -1 to 1: [origin, direction]. */
    ray(x, y) {
      this.lens.updateMatrixWorld();
      const origin = this.lens.position;
      return [origin, new THREE.Vector3(x, y, 0.5).unproject(this.lens).sub(origin).normalize()];
    }
  }

  return { Camera, PRESETS };
})();
