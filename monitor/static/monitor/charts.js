// Draws the charts of a series from the data in the page (#chart-data), once the reader turns to one.
"use strict";
(() => {
  const SYMBOLS = {
    failed: "x", timed_out: "hourglass", broken: "diamond", no_data: "circle-open",
    skipped: "triangle-right-open", missed: "diamond-open", lost: "diamond-x-open",
  };
  const UNITS = { // of an axis, by unit of the metric: the first whose size the largest value reaches
    seconds: [[172_800, 86_400, "d"], [7200, 3600, "h"], [600, 60, "min"], [0, 1, "s"]],
    bytes: [[1e9, 1e9, "GB"], [1e6, 1e6, "MB"], [1e3, 1e3, "kB"], [0, 1, "B"]],
    bytes_per_second: [[1e9, 1e9, "GB/s"], [1e6, 1e6, "MB/s"], [1e3, 1e3, "kB/s"], [0, 1, "B/s"]],
    ratio: [[0, 0.01, "%"]],
  };
  const PERIODS = { hour: 3_600_000, day: 86_400_000, week: 604_800_000, month: "M1", year: "M12" };
  const LENGTHS = { hour: 3_600_000, day: 86_400_000, week: 604_800_000, month: 2_629_800_000, year: 31_557_600_000 };
  const FORMATS = { hour: "%Y-%m-%d %H:00", day: "%Y-%m-%d", week: "week from %Y-%m-%d", month: "%Y-%m", year: "%Y" };
  const EVENTS = { // kind of annotation: symbol and colour
    pause: ["square", "muted"], maintenance: ["diamond", "link"], alert: ["triangle-down", "s-failed"],
    configuration: ["circle-open", "ink"], "level shift": ["star", "forecast"],
  };
  const LOG_TICKS = [-4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7].flatMap((power) => [1, 2, 5].map((n) => Number(`${n}e${power}`)));
  const EVENTS_AT = 0.985; // of the height
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

  // The times of the data are those of the reader's zone, without its name: they are counted as if they were UTC.
  const utc = (time) => new Date(time).toISOString().replace("T", " ").replace("Z", "");

  // Long pauses between runs are cut out of the axis and marked: [{from, to}], milliseconds.
  function pauses(times) {
    const gaps = times.slice(1).map((time, i) => ({ from: times[i], to: time }));
    const usual = median(gaps.map((gap) => gap.to - gap.from));
    return gaps.filter((gap) => gap.to - gap.from > PAUSE_OF_GAP * usual)
      .map((gap) => ({ from: gap.from + usual, to: gap.to - usual }));
  }

  // Plotly does not place ticks well on an axis with cuts: they are computed here.
  function timeAxis(times, zone) {
    const plain = axis(`Time (${zone})`, { type: "date", showgrid: false, tickangle: 0, hoverformat: "%Y-%m-%d %H:%M:%S" });
    if (!times.length) return plain;
    if (times.length === 1) return { ...plain, range: [utc(times[0] - HALF_RANGE), utc(times[0] + HALF_RANGE)] };
    const left = pauses(times);
    const edge = median(times.slice(1).map((time, i) => time - times[i]));
    if (!left.length) return { ...plain, range: [utc(times[0] - edge), utc(times.at(-1) + 2 * edge)] };
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

  function s(value) {
    if (value < 600) return `${value.toFixed(value < 1 ? 2 : 1)} s`;
    const [, size, unit] = UNITS.seconds.find(([least]) => value >= least);
    return `${(value / size).toFixed(1)} ${unit}`;
  }

  // The unit of an axis: its name, and how many units of the metric it is.
  function unitOf(unit, largest) {
    const [, size, name] = (UNITS[unit] ?? [[0, 1, unit.replace("_per_", "/")]]).find(([least]) => largest >= least);
    return { size, name };
  }

  const title = (data) => (data.metric === "total.seconds" ? "Duration" : data.metric);
  const scaled = (values, unit) => values.map((value) => (value === null ? null : value / unit.size));

  const escaped = (text) => text.replace(/[<>&]/g, (c) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;" })[c]);

  function wrapped(text, width = 60) {
    return escaped(text)
      .replace(new RegExp(`(?![^\\n]{1,${width}}$)([^\\n]{1,${width}})\\s`, "g"), "$1<br>");
  }

  function stageBars(data, x, unit) {
    if (data.scale === "log") return []; // bars that begin at zero have no place on this axis
    const reached = data.runs.flatMap((_, i) => (data.stages.some((stage) => data.seconds[stage.name][i] !== null) ? [i] : []));
    const width = widths(reached.map((i) => milliseconds(x[i])));
    return data.stages.map((stage) => ({
      type: "bar", name: stage.name, x: reached.map((i) => x[i]), y: scaled(reached.map((i) => data.seconds[stage.name][i]), unit), width,
      marker: { color: colour(`c-${stage.category}-${stage.shade}`), line: { width: 0.5, color: colour("surface") } },
      customdata: reached.map((i) => s(data.seconds[stage.name][i] ?? 0)), hovertemplate: "%{customdata}",
    }));
  }

  function forecastBands(data, unit) {
    return groups(data.forecasts.map((f) => f.segment))
      .flatMap((indices) => forecastBand(indices.map((i) => data.forecasts[i]), unit));
  }

  function forecastBand(forecasts, unit) {
    const x = forecasts.map((f) => f.time);
    const edge = { type: "scatter", mode: "lines", x, hoverinfo: "skip", name: "interval",
      line: { width: 1, color: faint("forecast", 0.35) } };
    return [
      { ...edge, y: scaled(forecasts.map((f) => f.lower), unit) },
      { ...edge, y: scaled(forecasts.map((f) => f.upper), unit), fill: "tonexty", fillcolor: faint("forecast", 0.09) },
      {
        type: "scatter", mode: "lines", name: "forecast", x, y: scaled(forecasts.map((f) => f.median), unit),
        line: { color: colour("forecast"), width: 1.75, dash: "dot" },
        customdata: forecasts.map((f) => `${s(f.median)} (${s(f.lower)} to ${s(f.upper)})`),
        hovertemplate: "%{customdata}",
      },
    ];
  }

  function pendingForecast(data, unit) {
    const f = data.pending;
    if (!f) return [];
    const [lower, middle, upper] = scaled([f.lower, f.median, f.upper], unit);
    return [{
      type: "scatter", mode: "markers", name: "next run", x: [f.time], y: [middle],
      error_y: { type: "data", symmetric: false, array: [upper - middle], arrayminus: [middle - lower],
        color: colour("forecast"), thickness: 2, width: 5 },
      marker: { color: colour("surface"), size: 8, symbol: "circle", line: { color: colour("forecast"), width: 2 } },
      customdata: [`${s(f.median)} (${s(f.lower)} to ${s(f.upper)})`], hovertemplate: "%{customdata}",
    }];
  }

  // The values of the metric: of a total a mark on top of its stages, of another metric a line.
  function totals(data, x, unit) {
    const y = scaled(data.totals, unit);
    const name = data.metric === "total.seconds" ? "total" : data.metric;
    const marker = { color: colour("surface"), size: 6, line: { color: colour("ink"), width: 1.25 } };
    const text = (i) => (data.unit === "seconds" ? s(data.totals[i] ?? 0) : `${Number((y[i] ?? 0).toPrecision(3))} ${unit.name}`);
    if (data.stages.length) {
      return [{ type: "scatter", mode: "markers", name, x, y, marker, customdata: x.map((_, i) => text(i)), hovertemplate: "%{customdata}" }];
    }
    return groups(data.segments).map((indices) => ({
      type: "scatter", mode: indices.length > 300 ? "lines" : "lines+markers", name, x: indices.map((i) => x[i]), y: indices.map((i) => y[i]),
      marker: { ...marker, size: 5 }, line: { width: 1.25, color: colour("ink") },
      customdata: indices.map(text), hovertemplate: "%{customdata}",
    }));
  }

  // Runs that did not pass: a symbol per state, on top of the stages they completed.
  function marks(data, x, unit) {
    const least = data.scale === "log" ? Math.min(...data.totals.filter((v) => v > 0), unit.size) : 0;
    const heights = scaled(data.runs.map((_, i) => Math.max(least, data.totals[i] ?? 0,
      data.stages.reduce((sum, g) => sum + (data.seconds[g.name][i] ?? 0), 0))), unit);
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
    const events = eventRanges(data, times);
    const [paused, crossed] = [pauseMarks(times), boundaryMarks(data, times, element.clientWidth - 64)];
    const body = getComputedStyle(document.body);
    return {
      uirevision: location.search, barmode: "stack", hovermode: "x unified", showlegend: false, dragmode: "zoom",
      margin: { l: 52, r: 12, t: crossed.shapes.length ? 24 : 8, b: 44 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: body.fontFamily, size: 12, color: colour("ink") },
      hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("line-strong"), font: { color: colour("ink"), size: 12 } },
      xaxis: timeAxis(times, data.zone), shapes: [...events, ...paused.shapes, ...crossed.shapes],
      annotations: [...paused.annotations, ...crossed.annotations],
      yaxis, yaxis3: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true }, ...more,
    };
  }

  // The events of a chart that lie on its axis, cut at its ends.
  function events(data, times) {
    const [from, to] = [times[0], times.at(-1)];
    return (data.annotations ?? []).map((event) => {
      const start = milliseconds(event.start);
      return { ...event, from: Math.max(start, from), to: event.end ? Math.min(milliseconds(event.end), to) : start };
    }).filter((event) => event.from <= to && event.to >= from);
  }

  // What lasts is a shaded range; a level shift is a line.
  function eventRanges(data, times) {
    return events(data, times).filter((event) => event.to > event.from || event.kind === "level shift").map((event) => ({
      type: "rect", layer: "below", yref: "paper", y0: 0, y1: 1, x0: utc(event.from), x1: utc(event.to),
      fillcolor: faint(EVENTS[event.kind][1], 0.09), line: { width: event.kind === "level shift" ? 1 : 0, color: colour("forecast") },
    }));
  }

  // A mark for each event at the top edge, which says what it is; text would be printed over other text.
  function eventMarks(data, times) {
    const shown = events(data, times);
    return Object.entries(EVENTS).flatMap(([kind, [symbol, name]]) => {
      const own = shown.filter((event) => event.kind === kind);
      return own.length ? [{
        type: "scatter", mode: "markers", name: kind, yaxis: "y3", x: own.map((event) => utc(event.from)), y: own.map(() => EVENTS_AT),
        marker: { symbol, size: 9, color: colour(name), line: { width: 1, color: colour(name) } }, cliponaxis: false,
        text: own.map((event) => wrapped(`${kind}: ${arrows(event.text)}`)), hovertemplate: "%{text}",
      }] : [];
    });
  }

  // The line of the hover box that says the time of a run in UTC, beside that of the reader's zone.
  function timesOfUtc(data, x) {
    if (data.zone === "UTC") return [];
    return [{
      type: "scatter", mode: "markers", name: "time", yaxis: "y3", x, y: x.map(() => 0), marker: { opacity: 0 },
      customdata: data.runs.map((run) => run.utc), hovertemplate: "%{customdata}",
    }];
  }

  const beside = (data, time) => (data.zone === "UTC" ? "" : `<br>${time}`);

  function valueAxis(data, unit, more) {
    const name = `${title(data)} (${unit.name})`;
    return data.scale === "log" ? axis(name, { type: "log", tickvals: LOG_TICKS }) : axis(name, more);
  }

  // From zero to the tallest run or interval, unless a very wide interval would squeeze the runs.
  function durations(data, unit, tallest) {
    const forecasts = [...data.forecasts, ...(data.pending ? [data.pending] : [])];
    const needed = Math.max(...forecasts.map((f) => f.upper), 0);
    const most = MOST_ABOVE * tallest;
    return valueAxis(data, unit, tallest && needed > most ? { range: [0, most / unit.size] } : FROM_NOTHING);
  }

  function history(element, data) {
    const x = data.runs.map((run) => run.slot);
    const tallest = Math.max(...data.runs.map((_, i) => Math.max(data.totals[i] ?? 0,
      data.stages.reduce((sum, g) => sum + (data.seconds[g.name][i] ?? 0), 0))));
    const unit = unitOf(data.unit, tallest);
    const traces = [...stageBars(data, x, unit), ...forecastBands(data, unit), ...totals(data, x, unit), ...marks(data, x, unit),
      ...pendingForecast(data, unit), ...eventMarks(data, x.map(milliseconds)), ...timesOfUtc(data, x)];
    return show(element, traces, layout(element, durations(data, unit, tallest), data));
  }

  function rateLines(data, name, style, scale) {
    const values = data.rates[name];
    const measured = groups(data.segments).filter((indices) => indices.some((i) => values[i] !== null));
    return measured.map((indices) => ({
      type: "scatter", mode: "lines+markers", name: name.replace(".bytes_per_second", ""), connectgaps: false,
      x: indices.map((i) => data.runs[i].slot),
      y: indices.map((i) => (values[i] === null ? null : values[i] / scale)),
      customdata: indices.map((i) => beside(data, data.runs[i].utc)), ...style,
    }));
  }

  function rates(element, data) {
    const names = Object.keys(data.rates);
    const largest = Math.max(...names.flatMap((name) => data.rates[name].filter((v) => v !== null)), 1);
    const { size: scale, name: unit } = unitOf("bytes_per_second", largest);
    const traces = names.flatMap((name, i) => rateLines(data, name, {
      line: { width: 1.25, color: colour(`l-${(i % 8) + 1}`) }, marker: { size: 4, symbol: i },
      hovertemplate: `%{y:.3g} ${unit}<br>%{x|%Y-%m-%d %H:%M:%S}%{customdata}`,
    }, scale));
    return show(element, traces, layout(element, axis(`Rate (${unit})`, FROM_NOTHING), data, { hovermode: "closest" }));
  }

  // A segment by interval: the band of the 10th to the 90th percentile, the median, and faint lines through the
  // extremes. A gap of more than one interval interrupts them; a single interval is drawn as an error bar.
  function intervalBand(data, part, unit) {
    const times = part.time.map(milliseconds);
    const length = LENGTHS[data.interval];
    const keys = times.map((time, i) => (i && time - times[i - 1] > 2.2 * length ? i : 0)).reduce((sums, n) => [...sums, (sums.at(-1) ?? 0) + n], []);
    return groups(keys).flatMap((indices) => bandOf(data, part, unit, indices));
  }

  function bandOf(data, part, unit, indices) {
    const column = (name) => scaled(indices.map((i) => part[name][i]), unit);
    const [lower, middle, upper] = [column("p10"), column("median"), column("p90")];
    const period = { xperiod: PERIODS[data.interval], xperiodalignment: "middle", ...(data.interval === "week" ? { xperiod0: "2024-01-01" } : {}) };
    const line = { type: "scatter", mode: "lines", x: indices.map((i) => part.time[i]), ...period };
    const edge = { ...line, hoverinfo: "skip", name: "p10 to p90", line: { width: 1, color: faint("ink", 0.3) } };
    const extreme = { ...line, hoverinfo: "skip", name: "lowest, highest", line: { width: 1, dash: "dot", color: faint("ink", 0.4) } };
    const text = (i) => (data.unit === "seconds" ? ["median", "p10", "p90", "lowest", "highest"].map((name) => s(part[name][i]))
      : ["median", "p10", "p90", "lowest", "highest"].map((name) => `${Number((part[name][i] / unit.size).toPrecision(3))} ${unit.name}`));
    return [
      { ...extreme, y: column("lowest") }, { ...extreme, y: column("highest") },
      { ...edge, y: lower }, { ...edge, y: upper, fill: "tonexty", fillcolor: faint("ink", 0.14) },
      {
        ...line, mode: indices.length > 120 ? "lines" : "lines+markers", name: "median", y: middle,
        line: { color: colour("ink"), width: 1.75 }, marker: { size: 4 },
        error_y: { type: "data", visible: indices.length === 1, symmetric: false, array: [upper[0] - middle[0]],
          arrayminus: [middle[0] - lower[0]], color: faint("ink", 0.4), thickness: 1, width: 5 },
        customdata: indices.map((i) => {
          const [m, low, high, least, most] = text(i);
          return `median ${m}, p10 ${low}, p90 ${high}<br>lowest ${least}, highest ${most}, ${part.passed[i]} passed${beside(data, part.utc[i])}`;
        }),
        hovertemplate: "%{customdata}<extra></extra>",
      },
    ];
  }

  function stageMeans(data, unit) {
    if (data.scale === "log") return [];
    return data.stages.filter((stage) => data.seconds[stage.name]).map((stage) => ({
      type: "bar", name: stage.name, x: data.time, y: scaled(data.seconds[stage.name], unit),
      xperiod: PERIODS[data.interval], xperiodalignment: "middle", ...(data.interval === "week" ? { xperiod0: "2024-01-01" } : {}),
      marker: { color: colour(`c-${stage.category}-${stage.shade}`), line: { width: 0 } }, opacity: 0.85,
      customdata: data.seconds[stage.name].map((value) => (value === null ? "" : s(value))), hovertemplate: "%{customdata}",
    }));
  }

  function failedShare(data) {
    const { time, runs: ended, failed } = data.counts;
    return {
      type: "bar", name: "failed", yaxis: "y2", x: time, y: failed.map((n, i) => (ended[i] ? (100 * n) / ended[i] : 0)),
      xperiod: PERIODS[data.interval], xperiodalignment: "middle", ...(data.interval === "week" ? { xperiod0: "2024-01-01" } : {}),
      marker: { color: colour("s-failed"), line: { width: 0 } },
      customdata: failed.map((n, i) => `${n} of ${ended[i]} failed`), hovertemplate: "%{customdata}<extra></extra>",
    };
  }

  function intervals(element, data) {
    const times = [...new Set([...data.counts.time, ...data.intervals.flatMap((part) => part.time)])].sort().map(milliseconds);
    const length = LENGTHS[data.interval];
    const largest = Math.max(...data.intervals.flatMap((part) => part.p90), 0);
    const highest = Math.max(...data.intervals.flatMap((part) => part.highest), 0);
    const unit = unitOf(data.unit, largest);
    const traces = [...stageMeans(data, unit), ...data.intervals.flatMap((part) => intervalBand(data, part, unit)),
      failedShare(data), ...eventMarks(data, [times[0], times.at(-1) + length])];
    const few = times.at(-1) - times[0] < 10 * DAY && data.interval !== "hour"; // Plotly would label hours
    const xaxis = axis(`Time (${data.zone})`, {
      type: "date", showgrid: false, hoverformat: FORMATS[data.interval], anchor: "y2",
      range: [utc(times[0] - length), utc(times.at(-1) + 2 * length)], ...(few ? { dtick: DAY, tickformat: "%b %-d<br>%Y" } : {}),
    });
    const most = highest > MOST_ABOVE * largest ? { range: [0, (MOST_ABOVE * largest) / unit.size] } : FROM_NOTHING;
    const yaxis = { ...valueAxis(data, unit, most), domain: [0.24, 1] };
    const yaxis2 = axis("Failed (%)", { domain: [0, 0.15], rangemode: "tozero", nticks: 3, ...(Math.max(...data.counts.failed, 0) ? {} : { range: [0, 10] }) });
    const shapes = eventRanges(data, [times[0], times.at(-1) + length]);
    return show(element, traces, layout(element, yaxis, { ...data, runs: [], boundaries: [], annotations: [] }, { xaxis, yaxis2, shapes, bargap: 0.08 }));
  }

  // The ranges that the reader chose survive updates, whose own ranges end with the newest run.
  const chosenRanges = new WeakMap(); // element -> {xaxis: range, yaxis: range}
  const ownRanges = new WeakMap();

  function show(element, traces, drawn) {
    ownRanges.set(element, drawn.xaxis.range);
    for (const [name, range] of Object.entries(chosenRanges.get(element) ?? {})) drawn[name] = { ...drawn[name], range };
    return Plotly.react(element, traces, drawn, CONFIG);
  }

  function keepRanges(element, changes) {
    const ranges = { ...chosenRanges.get(element) };
    for (const name of ["xaxis", "yaxis"]) {
      const range = changes[`${name}.range`] ?? (`${name}.range[0]` in changes ? [changes[`${name}.range[0]`], changes[`${name}.range[1]`]] : null);
      if (range) ranges[name] = range;
      if (changes[`${name}.autorange`]) delete ranges[name];
    }
    const own = ownRanges.get(element);
    const isOwn = own && ranges.xaxis?.every((time, i) => Math.abs(milliseconds(String(time)) - milliseconds(own[i])) < 1000);
    chosenRanges.set(element, isOwn ? {} : ranges); // a double click shows the own range again
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
    if (event.key === "0") Plotly.relayout(element, ownRanges.get(element) ? { "xaxis.range": ownRanges.get(element) } : { "xaxis.autorange": true });
    else if (ranges[event.key]) Plotly.relayout(element, { "xaxis.range": ranges[event.key].map(utc) });
    else return;
    event.preventDefault();
  }

  const DRAWERS = { history, intervals, rates };
  const linked = new WeakSet();

  function linkRuns(element) {
    if (linked.has(element)) return;
    linked.add(element);
    element.addEventListener("keydown", moveByKey);
    element.on("plotly_relayout", (changes) => keepRanges(element, changes));
    element.on("plotly_click", (event) => {
      const run = values().runs.find((each) => each.slot.startsWith(String(event.points[0].x).slice(0, 22)));
      if (run) location.assign(run.url);
    });
  }

  const values = () => JSON.parse(document.getElementById("chart-data").textContent);

  // The server has drawn each chart; Plotly takes over when the reader points at it, taps it or focuses it.
  const source = document.currentScript.dataset.plotly;
  let loading; // a promise of Plotly

  function load() {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = source;
      script.addEventListener("load", resolve);
      script.addEventListener("error", reject);
      document.head.append(script);
    });
    return loading;
  }

  async function draw(element) {
    await DRAWERS[element.dataset.chart](element, values());
    linkRuns(element);
    element.classList.add("is-interactive");
  }

  function takeOver(event) {
    const element = event.target.closest?.("[data-chart]:not(.is-wanted)");
    if (!element || event.pointerType === "touch") return; // a finger may scroll; a tap focuses
    element.classList.add("is-wanted");
    load().then(() => draw(element), () => {
      loading = undefined; // the server's drawing stays; the next time may succeed
      element.classList.remove("is-wanted");
    });
  }
  document.addEventListener("pointerover", takeOver);
  document.addEventListener("focusin", takeOver);

  // One chart per task, so that a page with several stays responsive.
  function redraw() {
    for (const element of document.querySelectorAll(".is-interactive")) setTimeout(() => element.isConnected && draw(element));
  }
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "live") redraw();
  });
  document.addEventListener("themechange", redraw);
})();
