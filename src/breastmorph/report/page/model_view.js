/* The mean and modes of a model on a page: sliders in standard deviations, on BreastView. */
"use strict";

(() => {
  const NAME = "shape";
  const STEPS = [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200];  // mm, where the colour bar may end
  // A number of the standard normal distribution (Box and Muller).
  const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());

  const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0)).buffer;

  /* Numbers of 16 bits times their scale; little-endian, as are all machines with a browser. */
  function floats({ scale, values }) {
    return Float32Array.from(new Int16Array(bytes(values)), value => value * scale);
  }

  function unpack(data) {
    const mean = floats(data.mean);
    for (let i = 0; i < mean.length; i++) mean[i] += data.middle[i % 3];
    const faces = Uint32Array.from(new (data.faces.wide ? Uint32Array : Uint16Array)(bytes(data.faces.values)));
    return { mean, faces, modes: data.modes.map(floats), landmarks: data.landmarks };
  }

  class ModelView {
    constructor(figure) {
      const stage = figure.querySelector(".live"), form = figure.querySelector(".controls");
      stage.hidden = false;
      Object.assign(this, unpack(JSON.parse(figure.querySelector(".model-data").textContent)));
      this.form = form;
      this.view = new BreastView(stage, { label: figure.dataset.label, wheel: "focus" });
      if (!this.view.available) {  // the picture of the mean stays
        stage.classList.add("unavailable");
        return;
      }
      form.hidden = false;
      this.view.resize();
      this.shape = this.mean.slice();
      this.normals = BreastSurface.normals(this.mean, this.faces, new Float32Array(this.mean.length));
      this.view.setMesh(NAME, this.mean, this.faces).view("front");
      this.sliders = [...form.querySelectorAll("[data-mode]")];
      this.playing = null;
      form.addEventListener("input", event => {
        if (event.target.dataset.mode !== undefined) this.stop();
        this.update();
      });
      form.addEventListener("submit", event => event.preventDefault());
      form.addEventListener("click", event => this.press(event.target.closest("button")));
    }

    press(button) {
      if (!button) return;
      const { view, play, do: wish } = button.dataset;
      if (view) this.view.view(view);
      if (play !== undefined) this.play(button, this.sliders[Number(play)]);
      if (wish === "reset") this.set(() => 0);
      if (wish === "random") this.set(normal);
      if (wish === "save") savePageFile("shape.png", this.view.screenshot());
    }

    /* Coefficients of all modes in standard deviations. */
    set(choose) {
      this.stop();
      this.sliders.forEach(slider => { slider.value = choose(); });
      this.update();
    }

    update() {
      const { mean, shape } = this;
      shape.set(mean);
      this.sliders.forEach((slider, k) => {
        const amount = Number(slider.value), mode = this.modes[k];
        const text = `${amount > 0 ? "+" : amount < 0 ? "−" : ""}${Math.abs(amount).toFixed(1)} sd`;
        slider.closest(".mode").querySelector("output").textContent = text;
        slider.setAttribute("aria-valuetext", text.replace("sd", "standard deviations"));
        if (amount !== 0) for (let i = 0; i < shape.length; i++) shape[i] += amount * mode[i];
      });
      this.view.setPositions(NAME, shape);
      this.paint();
      this.mark();
    }

    paint() {
      const kind = this.form.elements.colour.value, { mean, shape, normals } = this;
      if (kind === "skin") {
        this.view.setColours(NAME, null).setColourBar(null);
        return;
      }
      const values = new Float32Array(mean.length / 3), signed = kind === "outward";
      let most = 0;
      for (let i = 0, j = 0; i < values.length; i++, j += 3) {
        const x = shape[j] - mean[j], y = shape[j + 1] - mean[j + 1], z = shape[j + 2] - mean[j + 2];
        values[i] = signed ? x * normals[j] + y * normals[j + 1] + z * normals[j + 2]
          : Math.sqrt(x * x + y * y + z * z);
        most = Math.max(most, Math.abs(values[i]));
      }
      const max = STEPS.find(step => step >= most) ?? most;  // in steps: the colours do not flicker with the slider
      const scale = { min: signed ? -max : 0, max, map: signed ? "diverging" : "light" };
      this.view.setColours(NAME, BreastColours.colour(values, scale));
      const label = signed ? "Outward (+) or inward (−)" : "Distance from the mean";
      this.view.setColourBar({ ...scale, label, unit: "mm" });
    }

    mark() {
      const shown = this.form.elements.landmarks.checked ? Object.entries(this.landmarks) : [];
      if (!shown.length && !this.view.markers.length) return;
      this.view.setMarkers(shown.map(([label, vertex]) => (
        { name: label, label, position: [...this.shape.subarray(3 * vertex, 3 * vertex + 3)] })));
    }

    /* One mode to and fro until it is pressed again. */
    play(button, slider) {
      const same = this.playing?.button === button;
      this.stop();
      if (same) return;
      const limit = Number(slider.max), phase = Math.asin(Number(slider.value) / limit), start = performance.now();
      const step = now => {
        slider.value = (limit * Math.sin(phase + (now - start) / 900)).toFixed(1);
        this.update();
        this.playing.next = requestAnimationFrame(step);
      };
      button.setAttribute("aria-pressed", "true");
      this.playing = { button, next: requestAnimationFrame(step) };
    }

    stop() {
      if (!this.playing) return;
      cancelAnimationFrame(this.playing.next);
      this.playing.button.setAttribute("aria-pressed", "false");
      this.playing = null;
    }
  }

  // Unpacked when the reader comes near: the page opens at once.
  const near = new IntersectionObserver(entries => entries.forEach(({ isIntersecting, target }) => {
    if (!isIntersecting) return;
    near.unobserve(target);
    target.modelView = new ModelView(target);
  }), { rootMargin: "300px" });
  document.querySelectorAll("figure.model").forEach(figure => near.observe(figure));
})();
