// Draws the charts of a page and lets the reader choose a cell and zoom: by buttons, keys, drag and shift + wheel.

const STEP = 1.5;

function draw(chart) {
  const figure = chart.closest("figure");
  const plot = chart.querySelector(".plot");
  const { spec, columns, domain, log } = JSON.parse(chart.querySelector("script").textContent);
  const to = log ? Math.log10 : Number;
  const from = log ? (x) => 10 ** x : Number;
  const whole = domain.map(to);
  const names = Object.keys(columns);
  const values = columns[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
  spec.data = { values };
  // Vega sets the label of the plot to this.
  spec.description = plot.getAttribute("aria-label");
  chart.hidden = false;
  return vegaEmbed(plot, spec, { actions: false, renderer: "svg", ast: true, tooltip: { theme: "custom" } })
    .then(({ view }) => {
      let shown = [...whole];
      const show = (low, high) => {
        const width = Math.min(high - low, whole[1] - whole[0]);
        const start = Math.min(Math.max(low, whole[0]), whole[1] - width);
        shown = [start, start + width];
        view.signal("low", from(shown[0])).signal("high", from(shown[1])).runAsync();
      };
      const zoom = (factor, at = 0.5) => {
        const width = (shown[1] - shown[0]) / factor;
        const middle = shown[0] + at * (shown[1] - shown[0]);
        show(middle - at * width, middle + (1 - at) * width);
      };
      const pan = (part, of = shown) => {
        const by = part * (of[1] - of[0]);
        show(of[0] + by, of[1] + by);
      };
      const acts = {
        in: () => zoom(STEP), out: () => zoom(1 / STEP), reset: () => show(...whole),
        left: () => pan(-0.2), right: () => pan(0.2),
      };
      const keys = { "+": "in", "=": "in", "-": "out", 0: "reset", ArrowLeft: "left", ArrowRight: "right" };

      chart.querySelector("select")?.addEventListener("change", (event) => {
        view.signal("panel", Number(event.target.value)).runAsync();
      });
      for (const button of chart.querySelectorAll("button")) {
        button.addEventListener("click", acts[button.dataset.act]);
      }
      plot.addEventListener("keydown", (event) => {
        const act = acts[keys[event.key]];
        if (act && !event.ctrlKey && !event.metaKey && !event.altKey) {
          event.preventDefault();
          act();
        }
      });
      // The wheel alone scrolls the page.
      plot.addEventListener("wheel", (event) => {
        if (event.shiftKey) {
          event.preventDefault();
          const at = (event.clientX - plot.getBoundingClientRect().left - view.origin()[0]) / view.width();
          zoom(event.deltaY + event.deltaX < 0 ? STEP : 1 / STEP, Math.min(Math.max(at, 0), 1));
        }
      }, { passive: false });
      plot.addEventListener("dblclick", acts.reset);
      plot.addEventListener("pointerdown", (start) => {
        const before = [...shown];
        const move = (event) => pan((start.clientX - event.clientX) / view.width(), before);
        const end = () => window.removeEventListener("pointermove", move);
        window.addEventListener("pointermove", move);
        window.addEventListener("pointerup", end, { once: true });
        window.addEventListener("pointercancel", end, { once: true });
      });
      figure.querySelector("details").open = false;
      chart.dataset.drawn = "";
    })
    .catch((error) => {
      // The static figure stays.
      chart.hidden = true;
      console.error(error);
    });
}

window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});

for (const chart of document.querySelectorAll(".chart")) await draw(chart);
document.documentElement.dataset.charts = "drawn";
