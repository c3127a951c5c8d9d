import { SegmentedControl } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useDumpNode } from "../../api/dump/nodes";
import { useOverflow } from "../../api/dump/overflow";
import { useJob } from "../../api/jobs";
import { type Unit, useDump } from "../../api/records";
import type { Dump, OverflowSummary } from "../../api/types";
import { formatMoment } from "../../base/numbers/dates";
import { formatBytes, formatCount } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import { CopyButton } from "../../widgets/basic/CopyButton";
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
import { Header } from "../../widgets/page/Header";
import { Notice, useNoticeWords } from "../../widgets/page/Notice";
import { HelpOverlay } from "../../widgets/page/overlays";
import { UnitPicker } from "../../widgets/page/UnitPicker";
import { REPRODUCE_KEY, SOURCE_KEY } from "../../widgets/source/dialogKeys";
import { DumpTree } from "./DumpTree";
import classes from "./DumpView.module.css";
import { FirstOverflow } from "./FirstOverflow";
import { FindingList, NodeList } from "./NodeList";
import { NodePanel } from "./NodePanel";
import { RunNotes } from "./RunNotes";
import { useNodeRows } from "./useNodeRows";

const overlay = { overlay: true, late: true };
const ReproduceDialog = lazyPart(
  async () => (await import("../../widgets/source/ReproduceDialog")).ReproduceDialog,
  overlay,
);
const SourceDialog = lazyPart(async () => (await import("../../widgets/source/SourceDialog")).SourceDialog, overlay);
const DumpTrends = lazyPart(async () => (await import("./DumpTrends")).DumpTrends, overlay);
const AT_REST = [ReproduceDialog, SourceDialog, DumpTrends, HelpOverlay];

/** One dump: what it holds, its tree, its calls, one call in full. */
export function DumpView({ id }: { id: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { data: dump, error, refetch } = useDump(id);
  const job = useJob(dump?.status === "pending" ? dump.job : null, () => {
    void client.invalidateQueries({ queryKey: ["dumps"] });
  });
  useEffect(() => {
    if (dump) document.title = `${dump.name} · dumpscope`;
    return () => {
      document.title = "dumpscope";
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
        {dump?.status === "pending" && (
          <section className="panel">
            <JobBar job={job} label={t("dump.reading")} />
          </section>
        )}
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
  const nodes = useNodeRows(dump.id, unit, query, address.node);
  // A dump opens with its first call in full.
  const selected = address.node ?? nodes.rowAt(0)?.name ?? null;
  const tree = useTree("dumps", dump.id, unit, selected, "");
  const node = useDumpNode(dump.id, unit, selected).data;
  const overflow = useOverflow(dump.id, unit, dump.nodes > 0).data;
  const found = Object.values(overflow?.counts ?? {}).reduce((sum, count) => sum + count, 0);
  const onlyFound = address.dialog === "overflow" && found > 0;
  // The call whose maker was looked for and is not known.
  const [lost, setLost] = useNoticeWords();
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
    else setLost(node.name);
  };
  const move = async (delta: number) => {
    const from = address.node === null ? 0 : nodes.selectedAt;
    const row = await nodes.fetchAt(Math.max(0, Math.min(from + delta, nodes.total - 1)));
    if (row) select(row.name, true);
  };
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
          <section className={`panel ${classes.panel}`} aria-label={t("evidence.title")}>
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
                  onSelect={select}
                  onReproduce={() => update({ dialog: "reproduce" })}
                />
              )}
            </Boundary>
          </section>
        </div>
      </main>
      <Notice words={lost === selected ? t("evidence.flow.notMade") : ""} />
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
      <HelpOverlay opened={help} onClose={() => setHelp(false)} />
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
      </div>
    </section>
  );
}
