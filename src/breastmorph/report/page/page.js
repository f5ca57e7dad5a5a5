/* The buttons of a page that belong to no 3D view. The page can be read without this script. */
"use strict";

const savePageFile = (name, address) => {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
};

(() => {
  const copy = async text => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {  // not allowed for pages opened from a file in some browsers
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  };

  document.querySelectorAll(".record-box").forEach(box => {
    const parts = [...box.querySelectorAll("details")], status = box.querySelector("[role=status]");
    const text = () => JSON.stringify(JSON.parse(box.querySelector("script.record").textContent), null, 2);
    box.querySelector(".row").hidden = false;
    box.addEventListener("click", async event => {
      const wish = event.target.dataset?.do;
      if (wish === "copy") {
        status.textContent = await copy(text()) ? "Copied." : "This browser does not allow copying; save the file.";
      }
      if (wish === "save-record") {
        const address = URL.createObjectURL(new Blob([text()], { type: "application/json" }));
        savePageFile(box.dataset.name, address);
        setTimeout(() => URL.revokeObjectURL(address), 10000);
      }
      if (wish === "unfold") {
        const open = !parts.every(part => part.open);
        parts.forEach(part => { part.open = open; });
        event.target.textContent = open ? "Close all" : "Open all";
      }
    });
  });

  // On paper nothing can be unfolded; but nobody wants ten pages of hashes there, which the file holds anyway.
  const LONG = 120, HASHES = 8;
  const hashes = part => [...part.querySelectorAll("td")].filter(cell => /^[0-9a-f]{32,}$/.test(cell.textContent));
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")]
      .filter(part => part.querySelectorAll("tr").length <= LONG && hashes(part).length <= HASHES);
    folded.forEach(part => { part.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach(part => { part.open = false; }));
})();
