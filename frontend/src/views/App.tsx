import { useTranslation } from "../texts/useTranslation";
import { Link, useLocation } from "../widgets/basic/navigation";
import { Boundary } from "../widgets/basic/States";
import { Header } from "../widgets/page/Header";
import { ComparisonView } from "./comparison/ComparisonView";
import { DumpView } from "./dump/DumpView";
import { HomeView } from "./home/HomeView";

/** Three addresses: the start, a dump, a comparison. */
export function App() {
  const { t } = useTranslation();
  const { path } = useLocation();
  return (
    <Boundary title={t("app.crashed")} resetKey={path}>
      <Screen path={path} />
    </Boundary>
  );
}

function Screen({ path }: { path: string }) {
  const { t } = useTranslation();
  if (path === "" || path === "index.html") return <HomeView />;
  const [noun, id, rest] = path.split("/");
  if (id && rest === undefined) {
    const plain = decodeURIComponent(id);
    if (noun === "dumps") return <DumpView key={plain} id={plain} />;
    if (noun === "comparisons") return <ComparisonView key={plain} id={plain} />;
  }
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
