/** Counters, histograms and gauges in Prometheus' text format 0.0.4 and in OpenMetrics; and those of a server's requests. */

export const EXPOSITION_TYPES = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
} as const;
export type ExpositionFormat = keyof typeof EXPOSITION_TYPES;

/** Chooses the format that a client prefers; Prometheus' own where it has no preference. */
export function chooseExposition(accept: string | null): ExpositionFormat {
  const weigh = (type: string) =>
    Math.max(
      ...(accept ?? "").split(",").map((range) => {
        const [name, ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
        const version = parameters.find((one) => one.startsWith("version="))?.slice("version=".length);
        if (name !== type || (type.includes("openmetrics") && version !== undefined && version !== "1.0.0")) return 0;
        return Number(parameters.find((one) => one.startsWith("q="))?.slice(2) ?? 1) || 0;
      }),
    );
  const openMetrics = weigh("application/openmetrics-text");
  return openMetrics > 0 && openMetrics >= weigh("text/plain") ? "openMetrics" : "prometheus";
}

export type Labels = Readonly<Record<string, string>>;
/** `suffix` goes behind the name of the family: "" but for the parts of a histogram. */
type Sample = { suffix: string; labels: Labels; value: number };
export type MetricFamily = {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram";
  samples: () => readonly Sample[];
};

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const ESCAPES: Record<string, string> = { "\\": "\\\\", "\n": "\\n", '"': '\\"' };

const writeLabels = (labels: Labels): string => {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replace(/[\\\n"]/g, (character) => ESCAPES[character]!)}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
};

const writeValue = (value: number): string =>
  value === Infinity ? "+Inf" : value === -Infinity ? "-Inf" : String(value);

/** Families without samples are left out. OpenMetrics names the family of a counter without "_total". */
export function writeExposition(families: readonly MetricFamily[], format: ExpositionFormat = "prometheus"): string {
  const isOpen = format === "openMetrics";
  const lines: string[] = [];
  for (const { name, help, type, samples } of families) {
    const written = samples().map(
      ({ suffix, labels, value }) => `${name}${suffix}${writeLabels(labels)} ${writeValue(value)}`,
    );
    if (written.length === 0) continue;
    const text = help.replace(isOpen ? /[\\\n"]/g : /[\\\n]/g, (character) => ESCAPES[character]!);
    const family = isOpen && type === "counter" ? name.replace(/_total$/, "") : name;
    lines.push(`# HELP ${family} ${text}`, `# TYPE ${family} ${type}`, ...written);
  }
  return `${[...lines, ...(isOpen ? ["# EOF"] : [])].join("\n")}\n`;
}

type Named = { name: string; help: string };

const named = ({ name, help }: Named, type: MetricFamily["type"], samples: MetricFamily["samples"]): MetricFamily => {
  if (!NAME.test(name)) throw new Error(`"${name}" is not a valid name of a metric`);
  return { name, help, type, samples };
};

/** Reads a gauge when metrics are requested. Undefined: there is no value. */
export const gauge = (about: Named, read: () => number | undefined | readonly [labels: Labels, value: number][]) =>
  named(about, "gauge", () => {
    const value = read();
    if (value === undefined) return [];
    const all: readonly (readonly [Labels, number])[] = typeof value === "number" ? [[{}, value]] : value;
    return all.map(([labels, value]) => ({ suffix: "", labels, value }));
  });

/** `name` ends with _total. Each combination of labels exists from its first `at` on, starting at 0. */
export function createCounter(about: Named) {
  const cells = new Map<string, { labels: Labels; value: number }>();
  return {
    /** Returns a cell that callers keep if they count often. */
    at(labels: Labels): { value: number } {
      const key = Object.values(labels).join("\0");
      let cell = cells.get(key);
      if (!cell) cells.set(key, (cell = { labels, value: 0 }));
      return cell;
    },
    family: named(about, "counter", () =>
      [...cells.values()].map(({ labels, value }) => ({ suffix: "", labels, value })),
    ),
  };
}

/** `bounds` ascend; values above the last one count as well. */
export function createHistogram(about: Named, bounds: readonly number[]) {
  const cells: { labels: Labels; counts: Float64Array; sum: number }[] = [];
  return {
    at(labels: Labels): (value: number) => void {
      const cell = { labels, counts: new Float64Array(bounds.length + 1), sum: 0 };
      cells.push(cell);
      return (value) => {
        let index = 0;
        while (index < bounds.length && value > bounds[index]!) index++;
        cell.counts[index]!++;
        cell.sum += value;
      };
    },
    family: named(about, "histogram", () =>
      cells.flatMap(({ labels, counts, sum }) => {
        let below = 0;
        const buckets = Array.from(counts, (count, index) => {
          const le = writeValue(bounds[index] ?? Infinity);
          return { suffix: "_bucket", labels: { ...labels, le }, value: (below += count) };
        });
        return [...buckets, { suffix: "_sum", labels, value: sum }, { suffix: "_count", labels, value: below }];
      }),
    ),
  };
}

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const REQUEST_SECONDS = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 60];

/** `prefix` begins the names. */
export function createRequestMetrics(prefix: string) {
  const total = createCounter({
    name: `${prefix}_http_requests_total`,
    help: "Requests that this server has answered.",
  });
  const duration = createHistogram(
    {
      name: `${prefix}_http_request_duration_seconds`,
      help: "From the head of a request to the head of its answer, the upload of its body included.",
    },
    REQUEST_SECONDS,
  );
  type Series = { route: string; method: string; cells: Map<number, { value: number }>; observe: (s: number) => void };
  const byMethod = new Map<string, Map<string, Series>>();

  function open(route: string, method: string): Series {
    return { route, method, cells: new Map(), observe: duration.at({ route, method }) };
  }

  return {
    /** `route` is a pattern, or one word for all that matches none: there are as many series as there are values of it. */
    record(route: string, given: string, status: number, seconds: number): void {
      const method = METHODS.has(given) ? given : "other";
      let routes = byMethod.get(method);
      if (!routes) byMethod.set(method, (routes = new Map()));
      let series = routes.get(route);
      if (!series) routes.set(route, (series = open(route, method)));
      let cell = series.cells.get(status);
      if (!cell) series.cells.set(status, (cell = total.at({ route, method, status: String(status) })));
      cell.value++;
      series.observe(seconds);
    },
    families: [total.family, duration.family],
  };
}

const LAG_EVERY_MS = 500;
const LAG_WINDOW_MS = 15_000;

/** Measures the maximum delay of a timer in this process. */
export function createLoopLag(monotonic: () => number = () => performance.now()) {
  // Two windows, so that a reader who comes every 15 s misses nothing.
  let [current, before] = [0, 0];
  let turned = monotonic();
  let last = turned;

  function tick(): void {
    const now = monotonic();
    if (now - turned >= LAG_WINDOW_MS) [before, current, turned] = [current, 0, now];
    current = Math.max(current, now - last - LAG_EVERY_MS);
    last = now;
  }

  const timer = setInterval(tick, LAG_EVERY_MS);
  timer.unref();
  return {
    /** The longest of the last 15 to 30 seconds. */
    seconds: (): number => Math.max(current, before, monotonic() - last - LAG_EVERY_MS, 0) / 1_000,
    stop: () => clearInterval(timer),
  };
}

/** The names that Prometheus' own clients give these. */
export function processFamilies(): MetricFamily[] {
  const started = Date.now() / 1_000 - process.uptime();
  const memory = (read: (usage: NodeJS.MemoryUsage) => number) => () => read(process.memoryUsage());
  return [
    gauge(
      { name: "process_resident_memory_bytes", help: "Memory of this process." },
      memory(({ rss }) => rss),
    ),
    gauge({ name: "process_heap_bytes", help: "Of it, what JavaScript may use and what it uses." }, () => {
      const { heapTotal, heapUsed } = process.memoryUsage();
      return [
        [{ part: "total" }, heapTotal],
        [{ part: "used" }, heapUsed],
      ];
    }),
    named({ name: "process_cpu_seconds_total", help: "Processor time of this process." }, "counter", () => {
      const { user, system } = process.cpuUsage();
      return [{ suffix: "", labels: {}, value: (user + system) / 1_000_000 }];
    }),
    gauge({ name: "process_start_time_seconds", help: "When it was started, as Unix time." }, () => started),
    gauge({ name: "process_uptime_seconds", help: "How long ago that is." }, () => process.uptime()),
  ];
}
