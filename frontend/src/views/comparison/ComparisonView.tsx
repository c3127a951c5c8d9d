import { useComparison } from "../../api/records";
import { useTranslation } from "../../texts/useTranslation";
import { Link } from "../../widgets/basic/navigation";
import { Failure, Loading } from "../../widgets/basic/States";
import { lazyPart } from "../../widgets/late/lazyPart";
import { usePainted } from "../../widgets/late/painted";
import { Header } from "../../widgets/page/Header";
import classes from "./ComparisonView.module.css";
import { Sides } from "./Sides";
import { Triage } from "./Triage";

const ComparisonNews = lazyPart(async () => (await import("../../widgets/watch/ComparisonNews")).ComparisonNews, {
  late: true,
});
const Waiting = lazyPart(async () => (await import("./Waiting")).Waiting);

/** One comparison: its progress while it runs, the triage screen when it is done. */
export function ComparisonView({ id }: { id: string }) {
  const { t } = useTranslation();
  const { data: comparison, error, refetch } = useComparison(id);

  usePainted(error !== null || (comparison !== undefined && comparison.status !== "done"));

  const news = <ComparisonNews key="news" comparison={comparison} />;
  if (comparison?.status === "done")
    return (
      <>
        {news}
        <Triage comparison={comparison} />
      </>
    );
  return (
    <>
      {news}
      <Header>{comparison && <Sides comparison={comparison} />}</Header>
      <main id="main" className={classes.waiting}>
        {error && <Failure problem={error} onRetry={() => void refetch()} />}
        {!error && !comparison && <Loading />}
        {comparison && <Waiting comparison={comparison} fallback={<Loading />} />}
        <Link to="">{t("app.backHome")}</Link>
      </main>
    </>
  );
}
