import { useTranslation } from "../texts/useTranslation";
import { Link, usePath } from "../widgets/basic/navigation";
import { Boundary } from "../widgets/basic/States";
import { lazyPart } from "../widgets/late/lazyPart";
import { usePainted } from "../widgets/late/painted";
import { Header } from "../widgets/page/Header";

const ComparisonView = lazyPart(async () => (await import("./comparison/ComparisonView")).ComparisonView, {
  first: true,
});
const DumpView = lazyPart(async () => (await import("./dump/DumpView")).DumpView);
const HomeView = lazyPart(async () => (await import("./home/HomeView")).HomeView);

const CheckpointView = lazyPart(async () => (await import("./checkpoints/CheckpointView")).CheckpointView);
const MonitorView = lazyPart(async () => (await import("./monitors/MonitorView")).MonitorView);

/** Five addresses: the start, a dump, a comparison, two checkpoints, a monitored run. */
export function App() {
  const { t } = useTranslation();
  const path = usePath();
  return (
    <Boundary title={t("app.crashed")} resetKey={path}>
      <Screen path={path} />
    </Boundary>
  );
}

function Screen({ path }: { path: string }) {
  const { noun, id } = readPath(path);
  if (noun === "home") return <HomeView fallback={<Header />} />;
  if (noun === "dumps") return <DumpView key={id} id={id} fallback={<Header />} />;
  if (noun === "comparisons") return <ComparisonView key={id} id={id} fallback={<Header />} />;
  if (noun === "checkpoints") return <CheckpointView key={id} id={id} fallback={<Header />} />;
  if (noun === "monitors") return <MonitorView key={id} id={id} fallback={<Header />} />;
  return <NotFound />;
}

/** Has the script of the screen at an address come. */
export function preloadScreen(path: string): void {
  const { noun } = readPath(path);
  if (noun === "home") void HomeView.preload();
  if (noun === "dumps") void DumpView.preload();
  if (noun === "comparisons") void ComparisonView.preload();
  if (noun === "checkpoints") void CheckpointView.preload();
  if (noun === "monitors") void MonitorView.preload();
}

function readPath(path: string): { noun: string; id: string } {
  if (path === "" || path === "index.html") return { noun: "home", id: "" };
  const [noun = "", id = "", rest] = path.split("/");
  return id && rest === undefined ? { noun, id: decodeURIComponent(id) } : { noun: "", id: "" };
}

function NotFound() {
  const { t } = useTranslation();
  usePainted(true);
  return (
    <>
      <Header />
      <main id="main" style={{ padding: 24 }}>
        <p>{t("app.notFound")}</p>
        <Link to="">{t("app.backHome")}</Link>
      </main>
    </>
  );
}
