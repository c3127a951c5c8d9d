import { ActionIcon, Button, SegmentedControl, Tooltip } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useDumpNode } from "../../api/dump/nodes";
import { useJob } from "../../api/jobs";
import { type Unit, useDump } from "../../api/records";
import type { Dump, OverflowSummary } from "../../api/types";
import { DUMP_PLOTS, toPlot } from "../../base/address/address";
import { DUMP_KEY_HELP } from "../../base/address/keys";
import { pageTitle } from "../../base/comparison/endNews";
import { formatMoment } from "../../base/numbers/dates";
import { formatBytes, formatCount } from "../../base/numbers/format";
import { copyText } from "../../base/text/clipboard";
import { useTranslation } from "../../texts/useTranslation";
import { CopyButton } from "../../widgets/basic/CopyButton";
import { Icon } from "../../widgets/basic/Icon";
import { JobBar } from "../../widgets/basic/JobBar";
import { Link, useAddress } from "../../widgets/basic/navigation";
import { Notes, ProblemList } from "../../widgets/basic/Problems";
import { SearchField } from "../../widgets/basic/SearchField";
import { Boundary, Failure, Loading } from "../../widgets/basic/States";
import { useDebounced } from "../../widgets/basic/useDebounced";
import { useKeys } from "../../widgets/basic/useKeys";
import { lazyPart, useIdlePreload } from "../../widgets/late/lazyPart";
import { usePainted } from "../../widgets/late/painted";
import { useTree } from "../../widgets/lists/useTree";
import { PrecheckChip } from "../../widgets/marks/PrecheckMark";
import { Header } from "../../widgets/page/Header";
import { Notice, useNoticeWords } from "../../widgets/page/Notice";
import { HelpOverlay } from "../../widgets/page/overlays";
import { UnitPicker } from "../../widgets/page/UnitPicker";
import { REPRODUCE_KEY, SOURCE_KEY } from "../../widgets/source/dialogKeys";
import { WatchButton } from "../../widgets/watch/WatchButton";
import { WatchLine } from "../../widgets/watch/WatchLine";
import { NodePanel } from "./call/NodePanel";
import { DumpTree } from "./DumpTree";
import classes from "./DumpView.module.css";
import { FirstOverflow } from "./FirstOverflow";
import { FindingList, NodeList } from "./NodeList";
import { PARTS, PartMark } from "./PartMark";
import { RunNotes } from "./RunNotes";
import { useFoundWalk } from "./useFoundWalk";
import { useNodeRows } from "./useNodeRows";
import { useOpening } from "./useOpening";

const overlay = { overlay: true, late: true };
const ReproduceDialog = lazyPart(
  async () => (await import("../../widgets/source/ReproduceDialog")).ReproduceDialog,
  overlay,
);
const SourceDialog = lazyPart(async () => (await import("../../widgets/source/SourceDialog")).SourceDialog, overlay);
const DumpTrends = lazyPart(async () => (await import("./DumpTrends")).DumpTrends, overlay);
const CompareWith = lazyPart(async () => (await import("./CompareWith")).CompareWith, overlay);
const AT_REST = [ReproduceDialog, SourceDialog, DumpTrends, CompareWith, HelpOverlay];

/** One dump: what it holds, its tree, its calls, one call in full. */
export function DumpView({ id }: { id: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { data: dump, error, refetch } = useDump(id);
  const job = useJob(dump?.status === "pending" ? dump.job : null, () => {
    void client.invalidateQueries({ queryKey: ["dumps"] });
  });
  useEffect(() => {
    if (dump) document.title = pageTitle(dump.name);
    return () => {
      document.title = pageTitle(null);
    };
  }, [dump]);
  usePainted(dump !== undefined || error !== null);
  useIdlePreload(AT_REST, dump?.status === "ready");
  if (dump?.status === "ready") return <Ready dump={dump} />;
  return (
    <>
      <Header>{dump && <h1 className={classes.name}>{dump.name}</h1>}</Header>
      <main id="main" className={classes.waiting}>
        {error && <Failure problem={error} onRetry={() => void refetch()} />}
        {!dump && !error && <Loading />}
        {dump?.status === "pending" && (dump.job !== null || !dump.watch) && (
          <section className="panel">
            <JobBar job={job} label={t("dump.reading")} />
          </section>
        )}
        {dump?.watch && <WatchLine watch={dump.watch} name={dump.name} />}
        {dump?.status === "failed" && <WatchButton dump={dump} words />}
        {dump?.status === "failed" && <Failure title={t("dump.failed")} problem={dump.error} />}
        {dump && dump.problems.length > 0 && <ProblemList problems={dump.problems} />}
        <Link to="">{t("app.backHome")}</Link>
      </main>
    </>
  );
}

function Ready({ dump }: { dump: Dump }) {
  const { t } = useTranslation();
  const [address, update] = useAddress();
  const [help, setHelp] = useState(false);
  const step = address.step ?? dump.steps[0] ?? 0;
  const rank = address.rank ?? dump.ranks[0] ?? 0;
  const unit = useMemo(() => ({ step, rank }), [step, rank]);
  const several = dump.nodes > 0 && dump.steps.length * dump.ranks.length > 1;
  const [text, setText] = useState(address.query);
  const query = useDebounced(text.trim(), 250);
  const opening = useOpening(dump, unit);
  const { overflow } = opening;
  const nodes = useNodeRows(dump.id, unit, query, address.node ?? opening.node);
  const first = opening.node ?? (opening.why === null ? null : (nodes.rowAt(0)?.name ?? null));
  const selected = address.node ?? first;
  const tree = useTree("dumps", dump.id, unit, selected, String(dump.nodes));
  const node = useDumpNode(dump.id, unit, selected).data;
  const found = Object.values(overflow?.counts ?? {}).reduce((sum, count) => sum + count, 0);
  const onlyFound = address.dialog === "overflow" && found > 0;
  const [words, say] = useNoticeWords();
  const walk = useFoundWalk(dump.id, unit, found > 0);
  const select = (name: string, replace = false) => update({ step, rank, node: name }, replace);

  useEffect(() => update({ query }, true), [query, update]);
  const cycle = (values: readonly number[], value: number, delta: number, key: "step" | "rank") => {
    const next = values[values.indexOf(value) + delta];
    if (next !== undefined) update({ [key]: next });
  };
  const back = () => {
    if (!node || node.name !== selected) return;
    const made = node.items.find((item) => item.producer)?.producer;
    if (made) select(made.node);
    else say(t("evidence.flow.notMade"));
  };
  const toFound = async (delta: 1 | -1) => {
    const next = await walk(node?.name === selected ? node.name : selected, delta);
    if (next) select(next, true);
    else say(t("dump.noMoreFound"));
  };
  const copyLink = async () => {
    const done = await copyText(window.location.href);
    say(done ? t("app.copied") : t("app.copyFailed"));
  };
  const plot = (place: number) => {
    const tab = DUMP_PLOTS[place];
    return () => tab !== undefined && update(toPlot(address, tab));
  };
  const move = async (delta: number) => {
    const from = nodes.selectedAt >= 0 || address.node !== null ? nodes.selectedAt : 0;
    const row = await nodes.fetchAt(Math.max(0, Math.min(from + delta, nodes.total - 1)));
    if (row) select(row.name, true);
  };
  const marks = [
    ...PARTS.map((part) => ({ id: part, mark: <PartMark part={part} />, text: t(`dump.markHelp.${part}`) })),
    { id: "alone", mark: <PrecheckChip />, text: t("dump.markHelp.alone") },
  ];
  const panels = [SOURCE_KEY, REPRODUCE_KEY].map((one) => ({
    ...one,
    run: () => selected !== null && update({ dialog: one.id }),
  }));
  useKeys(
    {
      producer: back,
      nextNode: () => void move(1),
      previousNode: () => void move(-1),
      parent: () => {
        const above = node?.name === selected ? node?.path.at(-1) : undefined;
        if (above) select(above);
      },
      help: () => setHelp(true),
      search: () => document.querySelector<HTMLInputElement>("[data-search]")?.focus(),
      previousRank: () => cycle(dump.ranks, rank, -1, "rank"),
      nextRank: () => cycle(dump.ranks, rank, 1, "rank"),
      previousStep: () => cycle(dump.steps, step, -1, "step"),
      nextStep: () => cycle(dump.steps, step, 1, "step"),
      nextOrigin: () => void toFound(1),
      previousOrigin: () => void toFound(-1),
      firstOrigin: () => overflow?.first && select(overflow.first.node),
      plot1: plot(0),
      plot2: plot(1),
      plot3: plot(2),
      plot4: plot(3),
      plot5: plot(4),
      copyLink: () => void copyLink(),
      escape: () => setText(""),
    },
    panels,
  );

  return (
    <div className={classes.screen}>
      <Header>
        <h1 className={classes.name} title={dump.name}>
          <bdi>{dump.name}</bdi>
        </h1>
        <span className={classes.space} />
        <UnitPicker
          step={step}
          rank={rank}
          steps={dump.steps}
          ranks={dump.ranks}
          onStep={(next) => update({ step: next })}
          onRank={(next) => update({ rank: next })}
        />
        <Button
          variant="default"
          size="compact-xs"
          className={classes.compare}
          onClick={() => update({ dialog: "compare" })}
          data-testid="open-compare"
        >
          {t("dump.compare.open")}
        </Button>
        <Tooltip label={`${t("comparison.help")} (?)`}>
          <ActionIcon aria-label={t("comparison.help")} onClick={() => setHelp(true)} data-testid="help">
            <Icon name="help" />
          </ActionIcon>
        </Tooltip>
      </Header>
      <main id="main" className={classes.main} tabIndex={-1}>
        <Facts
          dump={dump}
          unit={unit}
          overflow={overflow}
          onSelect={select}
          onTrends={several ? () => update({ dialog: "trends" }) : null}
        />
        <div className={classes.panels}>
          <section className={`panel ${classes.panel}`} aria-label={t("tree.title")}>
            <Boundary title={t("app.crashed")}>
              <DumpTree
                id={dump.id}
                unit={unit}
                tree={tree}
                selected={selected}
                notable={found > 0}
                onSelect={select}
              />
            </Boundary>
          </section>
          <section className={`panel ${classes.panel}`} aria-label={t("dump.calls")}>
            <div className={classes.head}>
              <SearchField
                label={t("dump.search")}
                placeholder={`${t("dump.search")}  /`}
                text={text}
                onText={setText}
                data-search
              />
              {found > 0 && (
                <SegmentedControl
                  size="xs"
                  mt={4}
                  fullWidth
                  aria-label={t("dump.overflow.show")}
                  data={[
                    { value: "all", label: t("dump.overflow.all") },
                    { value: "overflow", label: t("dump.overflow.found", { total: formatCount(found) }) },
                  ]}
                  value={onlyFound ? "overflow" : "all"}
                  onChange={(value) => update({ dialog: value === "overflow" ? value : null })}
                  data-testid="show-findings"
                />
              )}
            </div>
            {onlyFound ? (
              <FindingList id={dump.id} unit={unit} selected={selected} onSelect={select} />
            ) : (
              <NodeList nodes={nodes} query={query} selected={selected} onSelect={select} />
            )}
          </section>
          <section className={`panel ${classes.panel} ${classes.call}`} aria-label={t("evidence.title")}>
            <Boundary title={t("app.crashed")} resetKey={selected ?? ""}>
              {dump.nodes === 0 && dump.problems.length > 0 ? (
                <div className={classes.detail}>
                  <ProblemList problems={dump.problems} />
                </div>
              ) : (
                <NodePanel
                  id={dump.id}
                  unit={unit}
                  name={selected}
                  trend={several}
                  notable={found > 0}
                  opened={address.node === null && first === selected ? opening.why : null}
                  looking={dump.nodes > 0 && selected === null && opening.why === null}
                  onSelect={select}
                  onReproduce={() => update({ dialog: "reproduce" })}
                  onSay={say}
                />
              )}
            </Boundary>
          </section>
        </div>
      </main>
      <Notice words={words} />
      <DumpTrends id={dump.id} opened={address.dialog === "trends"} />
      <ReproduceDialog
        choices={selected === null ? [] : [{ side: null, dump: dump.id, name: selected, unit, comparison: null }]}
        opened={address.dialog === "reproduce"}
        onClose={() => update({ dialog: null })}
      />
      <SourceDialog
        sides={node === undefined ? [] : [{ side: null, stack: { texts: node.stack, frames: node.frames } }]}
        opened={address.dialog === "source"}
        onClose={() => update({ dialog: null })}
      />
      <CompareWith dump={dump} opened={address.dialog === "compare"} onClose={() => update({ dialog: null })} />
      <HelpOverlay opened={help} onClose={() => setHelp(false)} keys={DUMP_KEY_HELP} marks={marks} />
    </div>
  );
}

interface FactsProps {
  dump: Dump;
  unit: Unit;
  overflow: OverflowSummary | undefined;
  onSelect: (name: string) => void;
  onTrends: (() => void) | null;
}

function Facts({ dump, unit, overflow, onSelect, onTrends }: FactsProps) {
  const { t, language } = useTranslation();
  const perhapsGoingOn = dump.problems.some(({ kind, loc }) => kind === "truncated" && loc.endsWith("dump.journal"));
  const facts: [keyof typeof labels, string][] = [
    ["framework", dump.framework ?? ""],
    ["task", dump.task ?? ""],
    ["level", dump.level ?? ""],
    ["summary", dump.summary ?? ""],
    ["nodes", formatCount(dump.nodes)],
    ["items", formatCount(dump.items)],
    ["size", formatBytes(dump.bytes)],
    ["created", formatMoment(dump.created, language)],
  ];
  const labels = {
    framework: t("dump.facts.framework"),
    task: t("dump.facts.task"),
    level: t("dump.facts.level"),
    summary: t("dump.facts.summary"),
    nodes: t("dump.facts.nodes"),
    items: t("dump.facts.items"),
    size: t("dump.facts.size"),
    created: t("dump.facts.created"),
  };
  return (
    <section className={`panel ${classes.facts}`} data-testid="facts">
      <dl>
        {facts
          .filter(([, value]) => value !== "")
          .map(([key, value]) => (
            <div key={key}>
              <dt>{labels[key]}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      <div className={classes.path}>
        <span className="mono dim" title={dump.path}>
          {dump.path}
        </span>
        <CopyButton text={dump.path} label={t("app.copy")} />
        {overflow && <FirstOverflow summary={overflow} onSelect={onSelect} />}
        <RunNotes id={dump.id} unit={unit} />
        {onTrends && (
          <button type="button" className={`plain ${classes.pill}`} onClick={onTrends} data-testid="open-trends">
            {t("trends.title")}
          </button>
        )}
        {dump.problems.length > 0 && (
          <Notes label={t("comparison.problemsCount", { count: dump.problems.length })}>
            <ProblemList problems={dump.problems} />
          </Notes>
        )}
        <WatchButton dump={dump} words={!dump.watch && perhapsGoingOn} />
      </div>
      {dump.watch && <WatchLine watch={dump.watch} name={dump.name} />}
    </section>
  );
}
