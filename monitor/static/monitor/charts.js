// Draws the charts of a series from the data in the page (#chart-data). Plotly is loaded after the first paint.
"use strict";
(() => {
  const SYMBOLS = {
    failed: "x", timed_out: "hourglass", broken: "diamond", no_data: "circle-open",
    skipped: "triangle-right-open", missed: "diamond-open", lost: "diamond-x-open",
  };
  const RATE_UNITS = [[1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]];
  const CONFIG = { displaylogo: false, responsive: true, displayModeBar: false };
  const KEY_STEP = 0.2; // of the shown time, for each press of an arrow
  const HALF_RANGE = 5 * 60000; // milliseconds before and after a single run
  const FROM_NOTHING = { rangemode: "tozero" };
  const BAR_OF_GAP = 0.8;
  const PAUSE_OF_GAP = 20;
  const MOST_ABOVE = 2.5; // the largest scale, in heights of the tallest run
  const MINUTE = 60_000;
  const DAY = 24 * 60 * MINUTE;
  const LETTER_PIXELS = 6.2;
  const TICK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080].map((n) => n * MINUTE);

  const probe = document.createElement("span"); // resolves custom properties to colours
  probe.hidden = true;
  document.body.append(probe);

  function colour(name) {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  }

  function faint(name, alpha) {
    return colour(name).replace("rgb(", "rgba(").replace(")", `, ${alpha})`);
  }

  function milliseconds(time) {
    return Date.parse(`${time.slice(0, 23).replace(" ", "T")}Z`);
  }

  const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

  // The width of every bar, in milliseconds: most of the usual gap, without overlapping its neighbours.
  function widths(times) {
    const gaps = times.slice(1).map((time, i) => time - times[i]);
    if (!gaps.length) return times.map(() => 60_000);
    const usual = median(gaps);
    const least = usual / 20;
    return times.map((_, i) => Math.max(Math.min(usual, gaps[i - 1] ?? usual, gaps[i] ?? usual) * BAR_OF_GAP, least));
  }

  const utc = (time) => new Date(time).toISOString().replace("T", " ").replace("Z", "");

  // Long pauses between runs are cut out of the axis and marked: [{from, to}], milliseconds.
  function pauses(times) {
    const gaps = times.slice(1).map((time, i) => ({ from: times[i], to: time }));
    const usual = median(gaps.map((gap) => gap.to - gap.from));
    return gaps.filter((gap) => gap.to - gap.from > PAUSE_OF_GAP * usual)
      .map((gap) => ({ from: gap.from + usual, to: gap.to - usual }));
  }

  // Plotly does not place ticks well on an axis with cuts: they are computed here.
  function timeAxis(times) {
    const plain = axis("Time (UTC)", { type: "date", showgrid: false, tickangle: 0, hoverformat: "%Y-%m-%d %H:%M:%S" });
    if (times.length === 1) return { ...plain, range: [utc(times[0] - HALF_RANGE), utc(times[0] + HALF_RANGE)] };
    const left = pauses(times);
    if (!left.length) return plain;
    const edge = median(times.slice(1).map((time, i) => time - times[i]));
    const shown = times.at(-1) - times[0] - left.reduce((sum, pause) => sum + pause.to - pause.from, 0);
    const step = TICK_STEPS.find((each) => shown / each <= 7) ?? TICK_STEPS.at(-1);
    const ticks = [];
    for (let time = Math.ceil(times[0] / step) * step; time <= times.at(-1); time += step) {
      if (!left.some((pause) => time > pause.from && time < pause.to)) ticks.push(time);
    }
    const day = (time) => utc(time).slice(0, 10);
    return {
      ...plain, range: [utc(times[0] - edge), utc(times.at(-1) + 2 * edge)],
      rangebreaks: left.map((pause) => ({ bounds: [utc(pause.from), utc(pause.to)] })),
      tickvals: ticks.map(utc),
      ticktext: ticks.map((t, i) => utc(t).slice(11, 16) + (i && day(t) === day(ticks[i - 1]) ? "" : `<br>${day(t)}`)),
    };
  }

  function pauseMarks(times) {
    const left = pauses(times);
    const shown = shownTime(times);
    const line = { color: colour("line-strong"), width: 1, dash: "dash" };
    return {
      shapes: left.map(({ to }) => ({ type: "line", yref: "paper", y0: 0, y1: 1, x0: utc(to), x1: utc(to), line })),
      annotations: left.map(({ from, to }) => ({
        text: ` ${span(to - from)} without runs `, x: utc(to), yref: "paper", y: 1,
        xanchor: shown(to) > 0.5 ? "right" : "left", yanchor: "top",
        showarrow: false, font: { size: 11, color: colour("muted") },
      })),
    };
  }

  // The start of another segment: a line before its first run, labelled with the change if there is room.
  function boundaryMarks(data, times, width) {
    const usual = median(times.slice(1).map((time, i) => time - times[i])) || MINUTE;
    const shown = shownTime(times);
    const from = data.boundaries.map((boundary) => milliseconds(boundary.time));
    const x = from.map((time) => utc(time - Math.min(usual, time - Math.max(...times.filter((t) => t < time))) / 2));
    const room = from.map((time, i) => (shown(from[i + 1] ?? times.at(-1) + usual) - shown(time)) * width);
    const line = { color: colour("ink"), width: 1.25, dash: "dot" };
    return {
      shapes: x.map((x0) => ({ type: "line", yref: "paper", y0: 0, y1: 1, x0, x1: x0, line })),
      annotations: data.boundaries.map((boundary, i) => ({
        text: label(boundary, room[i]), hovertext: wrapped(arrows(boundary.words)), x: x[i], yref: "paper", y: 1,
        xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 11, color: colour("ink") },
      })),
    };
  }

  const arrows = (words) => words.replaceAll(" -> ", " → ");

  function label(boundary, pixels) {
    const texts = [arrows(boundary.words), `segment ${boundary.number}`];
    const fits = texts.find((text) => (text.length + 4) * LETTER_PIXELS < pixels);
    return escaped(fits ?? String(boundary.number));
  }

  // Returns a function of the position of a time on the axis, 0 to 1.
  function shownTime(times) {
    const left = pauses(times);
    const leftBefore = (time) => left.reduce((sum, { from, to }) => sum + Math.max(0, Math.min(time, to) - from), 0);
    const without = (time) => time - times[0] - leftBefore(time);
    return (time) => without(time) / Math.max(without(times.at(-1)), 1);
  }

  // Consecutive indices of equal segments, so that no line connects two segments: [[index, ...], ...]
  function groups(segments) {
    const indexGroups = [];
    let last;
    segments.forEach((segment, i) => {
      if (segment !== null && segment !== last) {
        indexGroups.push([]);
        last = segment;
      }
      indexGroups.at(-1)?.push(i); // a run without values is a gap
    });
    return indexGroups;
  }

  function span(milliseconds) {
    const hours = milliseconds / 3_600_000;
    if (hours >= 48) return `${Math.round(hours / 24)} d`;
    return hours >= 2 ? `${Math.round(hours)} h` : `${Math.round(hours * 60)} min`;
  }

  const s = (value) => `${value.toFixed(value < 1 ? 2 : 1)} s`;

  const escaped = (text) => text.replace(/[<>&]/g, (c) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;" })[c]);

  function wrapped(text, width = 60) {
    return escaped(text)
      .replace(new RegExp(`(?![^\\n]{1,${width}}$)([^\\n]{1,${width}})\\s`, "g"), "$1<br>");
  }

  function stageBars(data, x) {
    const reached = data.runs.flatMap((_, i) => (data.stages.some((stage) => data.seconds[stage.name][i] !== null) ? [i] : []));
    const width = widths(reached.map((i) => milliseconds(x[i])));
    return data.stages.map((stage) => ({
      type: "bar", name: stage.name, x: reached.map((i) => x[i]), y: reached.map((i) => data.seconds[stage.name][i]), width,
      marker: { color: colour(`c-${stage.category}-${stage.shade}`), line: { width: 0.5, color: colour("surface") } },
      hovertemplate: "%{y:.2f} s",
    }));
  }

  function forecastBands(data) {
    return groups(data.forecasts.map((f) => f.segment))
      .flatMap((indices) => forecastBand(indices.map((i) => data.forecasts[i])));
  }

  function forecastBand(forecasts) {
    const x = forecasts.map((f) => f.time);
    const edge = { type: "scatter", mode: "lines", x, hoverinfo: "skip", name: "interval",
      line: { width: 1, color: faint("forecast", 0.35) } };
    return [
      { ...edge, y: forecasts.map((f) => f.lower) },
      { ...edge, y: forecasts.map((f) => f.upper), fill: "tonexty", fillcolor: faint("forecast", 0.09) },
      {
        type: "scatter", mode: "lines", name: "forecast", x, y: forecasts.map((f) => f.median),
        line: { color: colour("forecast"), width: 1.75, dash: "dot" },
        customdata: forecasts.map((f) => `${s(f.median)} (${s(f.lower)} to ${s(f.upper)})`),
        hovertemplate: "%{customdata}",
      },
    ];
  }

  function pendingForecast(data) {
    const f = data.pending;
    if (!f) return [];
    return [{
      type: "scatter", mode: "markers", name: "next run", x: [f.time], y: [f.median],
      error_y: { type: "data", symmetric: false, array: [f.upper - f.median], arrayminus: [f.median - f.lower],
        color: colour("forecast"), thickness: 2, width: 5 },
      marker: { color: colour("surface"), size: 8, symbol: "circle", line: { color: colour("forecast"), width: 2 } },
      customdata: [`${s(f.median)} (${s(f.lower)} to ${s(f.upper)})`], hovertemplate: "%{customdata}",
    }];
  }

  function totals(data, x) {
    return {
      type: "scatter", mode: "markers", name: "total", x, y: data.totals,
      marker: { color: colour("surface"), size: 6, line: { color: colour("ink"), width: 1.25 } },
      hovertemplate: "%{y:.2f} s",
    };
  }

  // Runs that did not pass: a symbol per state, on top of the stages they completed.
  function marks(data, x) {
    const heights = data.runs.map((_, i) => data.stages.reduce((sum, g) => sum + (data.seconds[g.name][i] ?? 0), 0));
    const states = [...new Set(data.runs.map((run) => run.state))].filter((state) => SYMBOLS[state]);
    return states.map((state) => {
      const chosen = data.runs.flatMap((run, i) => (run.state === state ? [i] : []));
      return {
        type: "scatter", mode: "markers", name: data.runs[chosen[0]].words, x: chosen.map((i) => x[i]),
        y: chosen.map((i) => heights[i]), cliponaxis: false,
        text: chosen.map((i) => wrapped(data.runs[i].reason || data.runs[i].words)),
        marker: { symbol: SYMBOLS[state], size: 10, color: colour(`s-${state}`),
          line: { width: SYMBOLS[state].endsWith("open") ? 1.75 : 1, color: SYMBOLS[state].endsWith("open") ? colour(`s-${state}`) : colour("surface") } },
        hovertemplate: "%{text}",
      };
    });
  }

  function axis(title, more = {}) {
    return {
      title: { text: title, font: { size: 12, color: colour("muted") }, standoff: 10 }, automargin: true,
      gridcolor: colour("line"), zerolinecolor: colour("line-strong"), linecolor: colour("line-strong"),
      tickfont: { color: colour("muted"), size: 11 }, ...more,
    };
  }

  function layout(element, yaxis, data, more = {}) {
    const times = data.runs.map((run) => milliseconds(run.slot));
    const [paused, crossed] = [pauseMarks(times), boundaryMarks(data, times, element.clientWidth - 64)];
    const body = getComputedStyle(document.body);
    return {
      uirevision: data.range ?? location.search, barmode: "stack", hovermode: "x unified", showlegend: false, dragmode: "zoom",
      margin: { l: 52, r: 12, t: crossed.shapes.length ? 24 : 8, b: 44 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: body.fontFamily, size: 12, color: colour("ink") },
      hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("line-strong"), font: { color: colour("ink"), size: 12 } },
      xaxis: timeAxis(times), shapes: [...paused.shapes, ...crossed.shapes],
      annotations: [...paused.annotations, ...crossed.annotations],
      yaxis, ...more,
    };
  }

  // From zero to the tallest run or interval, unless a very wide interval would squeeze the runs.
  function durations(data) {
    const tallest = Math.max(...data.runs.map((_, i) => Math.max(data.totals[i] ?? 0,
      data.stages.reduce((sum, g) => sum + (data.seconds[g.name][i] ?? 0), 0))));
    const forecasts = [...data.forecasts, ...(data.pending ? [data.pending] : [])];
    const needed = Math.max(...forecasts.map((f) => f.upper), 0);
    const most = MOST_ABOVE * tallest;
    return axis("Duration (s)", tallest && needed > most ? { range: [0, most] } : FROM_NOTHING);
  }

  function history(element, data) {
    const x = data.runs.map((run) => run.slot);
    const traces = [...stageBars(data, x), ...forecastBands(data), totals(data, x), ...marks(data, x),
      ...pendingForecast(data)];
    return Plotly.react(element, traces, layout(element, durations(data), data), CONFIG);
  }

  function rateLines(data, name, style, scale) {
    const values = data.rates[name];
    const measured = groups(data.segments).filter((indices) => indices.some((i) => values[i] !== null));
    return measured.map((indices, n) => ({
      type: "scatter", mode: "lines+markers", name: name.replace(".bytes_per_second", ""), connectgaps: false,
      legendgroup: name, showlegend: n === 0, x: indices.map((i) => data.runs[i].slot),
      y: indices.map((i) => (values[i] === null ? null : values[i] / scale)), ...style,
    }));
  }

  function rates(element, data) {
    const names = Object.keys(data.rates);
    const largest = Math.max(...names.flatMap((name) => data.rates[name].filter((v) => v !== null)), 1);
    const [scale, unit] = RATE_UNITS.find(([size]) => largest >= size) ?? RATE_UNITS.at(-1);
    const traces = names.flatMap((name, i) => rateLines(data, name, {
      line: { width: 1.25, color: colour(`l-${(i % 8) + 1}`) }, marker: { size: 4, symbol: i },
      hovertemplate: `%{y:.3g} ${unit}`,
    }, scale));
    const legend = { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size: 11 } };
    return Plotly.react(element, traces, layout(element, axis(`Rate (${unit})`, FROM_NOTHING), data, { showlegend: true, legend, hovermode: "closest" }), CONFIG);
  }

  // A band per segment from the lowest to the highest total of each day, with a line through the means. A
  // single day is drawn as an error bar.
  function dayBand(days) {
    const x = days.map((day) => day.time);
    const edge = { type: "scatter", mode: "lines", x, hoverinfo: "skip", name: "range",
      line: { width: 1, color: faint("ink", 0.25) } };
    return [
      { ...edge, y: days.map((day) => day.lowest) },
      { ...edge, y: days.map((day) => day.highest), fill: "tonexty", fillcolor: faint("ink", 0.1) },
      {
        type: "scatter", mode: days.length > 90 ? "lines" : "lines+markers", name: "mean", x, y: days.map((day) => day.mean),
        line: { color: colour("ink"), width: 1.25 }, marker: { size: 4 },
        error_y: { type: "data", visible: days.length === 1, symmetric: false, array: days.map((day) => day.highest - day.mean),
          arrayminus: days.map((day) => day.mean - day.lowest), color: faint("ink", 0.4), thickness: 1, width: 5 },
        customdata: days.map((day) => `${s(day.mean)} (${s(day.lowest)} to ${s(day.highest)}), ${day.passed} passed`),
        hovertemplate: "%{customdata}",
      },
    ];
  }

  function days(element, data) {
    const times = data.days.map((day) => milliseconds(day.time));
    const left = pauses(times); // gaps stay visible on this scale
    const keys = data.days.map((day, i) => `${day.segment} ${left.filter((pause) => pause.from < times[i]).length}`);
    const traces = groups(keys).flatMap((indices) => dayBand(indices.map((i) => data.days[i])));
    const few = times.at(-1) - times[0] < 10 * DAY; // Plotly would label hours
    const xaxis = axis("Day (UTC)", {
      type: "date", showgrid: false, hoverformat: "%Y-%m-%d", range: [utc(times[0] - DAY), utc(times.at(-1) + DAY)],
      ...(few ? { dtick: DAY, tickformat: "%b %-d<br>%Y" } : {}),
    });
    return Plotly.react(element, traces, layout(element, axis("Duration (s)", FROM_NOTHING), { runs: [], boundaries: [] }, { xaxis }), CONFIG);
  }

  // Arrows move along the time axis, + and - zoom, 0 shows all.
  function moveByKey(event) {
    const element = event.currentTarget;
    const [from, to] = element._fullLayout.xaxis.range.map((time) => milliseconds(String(time)));
    const width = to - from;
    const ranges = {
      ArrowLeft: [from - KEY_STEP * width, to - KEY_STEP * width],
      ArrowRight: [from + KEY_STEP * width, to + KEY_STEP * width],
      "+": [from + KEY_STEP * width, to - KEY_STEP * width],
      "-": [from - KEY_STEP * width, to + KEY_STEP * width],
    };
    if (event.key === "0") Plotly.relayout(element, { "xaxis.autorange": true });
    else if (ranges[event.key]) Plotly.relayout(element, { "xaxis.range": ranges[event.key].map(utc) });
    else return;
    event.preventDefault();
  }

  const DRAWERS = { history, days, rates };
  const linked = new WeakSet();

  function linkRuns(element) {
    if (linked.has(element)) return;
    linked.add(element);
    element.addEventListener("keydown", moveByKey);
    element.on("plotly_click", (event) => {
      const run = values().runs.find((each) => each.slot.startsWith(String(event.points[0].x).slice(0, 22)));
      if (run) location.assign(run.url);
    });
  }

  const values = () => JSON.parse(document.getElementById("chart-data").textContent);

  function draw() {
    const data = values();
    const isEmpty = { history: !data.runs.length, days: !data.days.length, rates: !Object.keys(data.rates).length };
    for (const element of document.querySelectorAll("[data-chart]")) {
      const name = element.dataset.chart;
      element.closest("[data-chart-part]").hidden = isEmpty[name];
      if (!isEmpty[name]) DRAWERS[name](element, data).then(linkRuns);
    }
  }

  const source = document.currentScript.dataset.plotly;
  const redraw = () => window.Plotly && draw();
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "live") redraw();
  });
  document.addEventListener("themechange", redraw);

  // After the first paint: the page can be read before Plotly has been loaded.
  function load() {
    const script = document.createElement("script");
    script.src = source;
    script.addEventListener("load", draw);
    document.head.append(script);
  }
  requestAnimationFrame(() => setTimeout(load));
})();
