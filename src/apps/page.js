// Draws the plots of a report: data from #plots, colours from the style sheet, and anew when the
// window or the colour scheme changes.
(() => {
  'use strict';
  const plots = JSON.parse(document.getElementById('plots').textContent);
  const places = [...document.querySelectorAll('[data-plot]')];
  if (typeof uPlot === 'undefined') {
    for (const place of places) {
      place.style.minHeight = '0';
      place.textContent = 'This program was built without uPlot; the numbers are in the table.';
    }
    return;
  }
  const colour = name =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const shown = value => {
    if (value == null) return '';
    const size = Math.abs(value);
    const digits = size >= 1000 || Number.isInteger(value) ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4;
    return value.toFixed(digits);
  };

  // On an axis, where room is scarce: 0.25, 40, 12 k, 3 M.
  const brief = value => {
    const size = Math.abs(value);
    const [scale, unit] = size >= 1e6 ? [1e6, ' M'] : size >= 1e4 ? [1e3, ' k'] : [1, ''];
    return Number((value / scale).toPrecision(6)) + unit;
  };

  // Intervals, as whiskers through their points.
  const whiskers = plot => u => {
    const context = u.ctx;
    const cap = 4 * devicePixelRatio;
    context.save();
    context.setLineDash([]);
    context.lineWidth = 1.5 * devicePixelRatio;
    plot.series.forEach((series, i) => {
      context.strokeStyle = colour('--c' + i % 6);
      series.interval.forEach(([low, high], j) => {
        if (low == null || high == null || !u.series[i + 1].show) return;
        const x = u.valToPos(plot.x[j], 'x', true);
        const top = u.valToPos(high, 'y', true);
        const bottom = u.valToPos(low, 'y', true);
        context.beginPath();
        context.moveTo(x, top);
        context.lineTo(x, bottom);
        for (const y of [top, bottom]) {
          context.moveTo(x - cap, y);
          context.lineTo(x + cap, y);
        }
        context.stroke();
      });
    });
    context.restore();
  };

  const seriesOf = plot => {
    const nBars = plot.series.filter(series => series.form === 'bars').length;
    let bar = 0;
    return plot.series.map((series, i) => {
      const stroke = colour('--c' + i % 6);
      const given = {
        label: series.name, stroke, width: 2, spanGaps: false, value: (u, v) => shown(v),
        points: {show: series.form !== 'dashed' && plot.x.length <= 60, size: 6, fill: stroke},
      };
      if (series.form === 'dashed') given.dash = [7, 5];
      if (series.form === 'points') given.paths = () => null;
      if (series.form === 'points') given.points.size = 9;
      if (series.form === 'bars') {
        given.paths = uPlot.paths.bars({size: [0.8 / nBars, 60],
                                        align: nBars === 1 ? 0 : bar++ === 0 ? -1 : 1});
        given.fill = stroke + 'b0';
        given.points.show = false;
      }
      return given;
    });
  };

  const options = (plot, width) => {
    const ink = colour('--faint');
    const grid = {stroke: colour('--rule'), width: 1};
    const font = '12px system-ui, sans-serif';
    const axis = {stroke: ink, grid, ticks: grid, font, labelFont: font, labelSize: 22};
    const named = plot.xNames.length > 0;
    // Names that would touch are left out between others.
    const longest = Math.max(0, ...plot.xNames.map(name => name.length));
    const every = Math.max(1, Math.ceil(7 * (longest + 1) * plot.xNames.length / (width - 90)));
    const first = plot.x[0], last = plot.x[plot.x.length - 1];
    const bars = plot.series.some(series => series.form === 'bars');
    const step = plot.x.length > 1 ? plot.x[1] - plot.x[0] : 1;
    const margin = bars || named ? 0.6 * step : Math.max((last - first) * 0.03, first === last);
    return {
      width, height: 320, legend: {live: width > 480}, cursor: {points: {size: 7}},
      scales: {
        x: {time: false, range: [first - margin, last + margin]},
        y: {range: (u, low, high) => {
          for (const series of plot.series)
            for (const [, top] of series.interval) if (top != null && top > high) high = top;
          return [Math.min(0, low * 1.08), high > 0 ? high * 1.08 : high === 0 ? 1 : 0];
        }},
      },
      axes: [
        {...axis, label: plot.xLabel,
         ...(named && {splits: () => plot.x, values: (u, at) => at.map(
           v => plot.x.indexOf(v) % every ? '' : plot.xNames[plot.x.indexOf(v)] ?? '')}),
         ...(!named && {values: (u, at) => at.map(brief)}),
         ...(!named && plot.x.every(Number.isInteger) && {incrs: last - first <= 40
           ? [1, 2, 4, 8] : [10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6, 1e7]})},
        {...axis, label: plot.yLabel, size: 58, values: (u, at) => at.map(brief)},
      ],
      series: [{label: plot.xLabel, value: (u, v) =>
        named && v != null ? plot.xNames[plot.x.indexOf(v)] ?? '' : shown(v)},
        ...seriesOf(plot)],
      hooks: {draw: [whiskers(plot)]},
    };
  };

  let drawn = [];
  const draw = () => {
    for (const one of drawn) one.destroy();
    drawn = places.map(place => {
      const plot = plots[Number(place.dataset.plot)];
      return new uPlot(options(plot, Math.max(place.clientWidth, 200)),
                       [plot.x, ...plot.series.map(series => series.y)], place);
    });
    document.body.dataset.drawn = String(drawn.length);
  };
  draw();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth === width) return;  // a phone's bars come and go
    width = innerWidth;
    draw();
  });
})();
