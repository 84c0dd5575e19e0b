// Moves through the frames. Without it the page shows three frames; everything else needs no script.
"use strict";
(() => {
  const data = document.getElementById("film");
  const slider = document.getElementById("frame");
  if (!data || !slider) return;
  const film = JSON.parse(data.textContent);
  const when = document.getElementById("when");
  const play = document.getElementById("play");
  const kinds = ["observed", "predicted", "rest"].filter((kind) => kind in film);
  document.documentElement.classList.add("live");

  function show(k) {
    for (const kind of kinds) {
      const image = document.querySelector(".live-" + kind);
      image.setAttribute("href", "data:image/png;base64," + film[kind][k]);
    }
    when.textContent = film.when[k];
    slider.setAttribute("aria-valuetext", film.when[k]);
  }

  let timer = null;
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }
  function step() {
    const last = Number(slider.max);
    if (Number(slider.value) >= last) return stop();
    slider.value = String(Number(slider.value) + 1);
    show(Number(slider.value));
  }
  slider.addEventListener("input", () => {
    stop();
    show(Number(slider.value));
  });
  play.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (slider.value === slider.max) slider.value = "0";
    show(Number(slider.value));
    play.textContent = "Stop";
    timer = setInterval(step, 120);
  });
  show(Number(slider.value));
})();
