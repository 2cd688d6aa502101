// The pages work without this script. It adds what needs one.
"use strict";

// Copy buttons put a command on the clipboard.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  });
}

// Escape closes the panel of an act and returns to its button; a slash goes to the search.
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const open = event.target.closest("details.act[open], details.step[open]");
    if (open) {
      open.open = false;
      open.querySelector("summary").focus();
    }
  }
  if (event.key === "/" && !event.target.closest("input, textarea, select")) {
    event.preventDefault();
    document.getElementById("jump").focus();
  }
});
