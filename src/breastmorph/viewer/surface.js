/* Geometry of triangle meshes in typed arrays: normals, the point under a ray, bounds. */
"use strict";

const BreastSurface = (() => {
  /* Unit normals of the vertices, weighted by the area of their faces; written into `normals`. */
  function normals(positions, faces, normals) {
    normals.fill(0);
    for (let f = 0; f < faces.length; f += 3) {
      const a = 3 * faces[f], b = 3 * faces[f + 1], c = 3 * faces[f + 2];
      const ax = positions[a], ay = positions[a + 1], az = positions[a + 2];
      const ux = positions[b] - ax, uy = positions[b + 1] - ay, uz = positions[b + 2] - az;
      const vx = positions[c] - ax, vy = positions[c + 1] - ay, vz = positions[c + 2] - az;
      const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
      normals[a] += x; normals[a + 1] += y; normals[a + 2] += z;
      normals[b] += x; normals[b + 1] += y; normals[b + 2] += z;
      normals[c] += x; normals[c + 1] += y; normals[c + 2] += z;
    }
    for (let i = 0; i < normals.length; i += 3) {
      const x = normals[i], y = normals[i + 1], z = normals[i + 2];
      const scale = 1 / (Math.sqrt(x * x + y * y + z * z) || 1);
      normals[i] = x * scale; normals[i + 1] = y * scale; normals[i + 2] = z * scale;
    }
    return normals;
  }

  /* The faces in an order in which neighbours follow each other, so that what draws them computes a corner once and not for
     each of its faces: by cells of a grid along a curve that keeps near what is near (Morton 1966). */
  function inOrder(positions, faces) {
    const bits = 6, count = faces.length / 3, [low, high] = bounds(positions), key = new Uint32Array(count), starts = new Uint32Array(8 ** bits + 1);
    const scale = low.map((value, k) => (2 ** bits - 1) / Math.max(high[k] - value, 1e-9));
    for (let f = 0; f < count; f++) {
      const at = 3 * faces[3 * f];
      let cell = 0;
      for (let k = 0; k < 3; k++) {
        const step = (positions[at + k] - low[k]) * scale[k];
        for (let b = 0; b < bits; b++) cell |= ((step >> b) & 1) << (3 * b + k);
      }
      starts[(key[f] = cell) + 1] += 1;
    }
    for (let cell = 1; cell < starts.length; cell++) starts[cell] += starts[cell - 1];
    const sorted = new Uint32Array(faces.length);
    for (let f = 0; f < count; f++) sorted.set(faces.subarray(3 * f, 3 * f + 3), 3 * starts[key[f]]++);
    return sorted;
  }

  /* A thin tube of four sides along a line of points [[x, y, z] ...], closed unless it is `open`, with gaps where it is
     dashed: {positions, faces}. */
  function tube(line, radius, dashed = false, open = false) {
    const n = line.length, positions = new Float32Array(12 * n), faces = [];
    const sum = (a, b, times = 1) => a.map((value, i) => value + times * b[i]), dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    const unit = a => { const length = Math.hypot(...a) || 1; return a.map(value => value / length); };
    const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    const centre = line.reduce((total, point) => sum(total, point, 1 / n), [0, 0, 0]);
    line.forEach((point, i) => {
      const [after, before] = open ? [Math.min(i + 1, n - 1), Math.max(i - 1, 0)] : [(i + 1) % n, (i + n - 1) % n];
      const along = unit(sum(line[after], line[before], -1)), away = sum(point, centre, -1);
      const out = unit(sum(away, along, -dot(away, along))), up = cross(along, out);
      [[out, 1], [up, 1], [out, -1], [up, -1]].forEach(([side, sign], k) => positions.set(sum(point, side, sign * radius), 12 * i + 3 * k));
      if ((dashed && i % 4 > 1) || (open && i === n - 1)) return;
      for (let k = 0; k < 4; k++) {
        const [a, b] = [4 * i + k, 4 * i + (k + 1) % 4], [c, d] = [a, b].map(corner => (corner + 4) % (4 * n));
        faces.push(a, b, c, b, d, c);
      }
    });
    return { positions, faces: new Uint32Array(faces) };
  }

  /* The first face that a ray meets, from either side (Moeller and Trumbore 1997), or null. */
  function hit(positions, faces, origin, direction) {
    const [ox, oy, oz] = origin, [dx, dy, dz] = direction;
    let best = Infinity, face = -1, first = 0, second = 0;
    for (let f = 0; f < faces.length; f += 3) {
      const a = 3 * faces[f], b = 3 * faces[f + 1], c = 3 * faces[f + 2];
      const ax = positions[a], ay = positions[a + 1], az = positions[a + 2];
      const ux = positions[b] - ax, uy = positions[b + 1] - ay, uz = positions[b + 2] - az;
      const vx = positions[c] - ax, vy = positions[c + 1] - ay, vz = positions[c + 2] - az;
      const px = dy * vz - dz * vy, py = dz * vx - dx * vz, pz = dx * vy - dy * vx;
      const determinant = ux * px + uy * py + uz * pz;
      if (determinant === 0) continue;
      const inverse = 1 / determinant, tx = ox - ax, ty = oy - ay, tz = oz - az;
      const u = (tx * px + ty * py + tz * pz) * inverse;
      if (u < -1e-7 || u > 1.0000001) continue;  // a ray along an edge must not slip through
      const qx = ty * uz - tz * uy, qy = tz * ux - tx * uz, qz = tx * uy - ty * ux;
      const v = (dx * qx + dy * qy + dz * qz) * inverse;
      if (v < -1e-7 || u + v > 1.0000001) continue;
      const along = (vx * qx + vy * qy + vz * qz) * inverse;
      if (along > 0 && along < best) { best = along; face = f / 3; first = u; second = v; }
    }
    if (face < 0) return null;
    const barycentric = [1 - first - second, first, second], point = [0, 0, 0];
    for (let corner = 0; corner < 3; corner++) {
      const vertex = 3 * faces[3 * face + corner];
      for (let axis = 0; axis < 3; axis++) point[axis] += barycentric[corner] * positions[vertex + axis];
    }
    return { face, barycentric, point, distance: best };
  }

  /* Lowest and highest coordinate of each axis: [[x, y, z], [x, y, z]]. */
  function bounds(positions) {
    const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    for (let i = 0; i < positions.length; i++) {
      const axis = i % 3, value = positions[i];
      if (value < low[axis]) low[axis] = value;
      if (value > high[axis]) high[axis] = value;
    }
    return [low, high];
  }

  return { normals, hit, bounds, inOrder, tube };
})();
