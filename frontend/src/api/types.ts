/** Short names for the wire shapes, which are generated from the server's OpenAPI document. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Accepted = Schemas["Accepted"];
export type Comparison = Schemas["Comparison"];
export type CompareRequest = Schemas["NewComparison"];
export type ComparisonOptions = Schemas["ComparisonOptions"];
export type Dump = Schemas["Dump"];
export type OverflowBelow = Schemas["OverflowBelow"];
export type OverflowFinding = Schemas["OverflowFinding"];
export type OverflowSummary = Schemas["OverflowSummary"];
export type DumpLeaf = Schemas["DumpLeaf"];
export type DumpNode = Schemas["DumpNode"];
export type DumpNodeRow = Schemas["DumpNodeRow"];
export type FigureReply = Schemas["Figure"];
export type Values = Schemas["Values"];
export type Collective = Schemas["Collective"];
export type CollectivePart = Schemas["CollectivePart"];
export type Flow = Schemas["Flow"];
export type FlowConsumer = Schemas["FlowConsumer"];
export type FlowInput = Schemas["FlowInput"];
export type HandEdit = Schemas["HandEdit"];
export type HandEdits = Schemas["HandEdits"];
export type NodeNote = Schemas["NodeNote"];
export type PolicyTrial = Schemas["PolicyTrial"];
export type Health = Schemas["Health"];
export type JudgedAlone = Schemas["JudgedAlone"];
export type Job = Schemas["Job"];
export type JoinedSide = Schemas["JoinedSide"];
export type JoinedUnit = Schemas["JoinedUnit"];
export type Metric = Schemas["Metric"];
export type Leaf = Schemas["Leaf"];
export type LeftCall = Schemas["LeftCall"];
export type MatchingPreview = Schemas["MatchingPreview"];
export type NodeAlone = Schemas["NodeAlone"];
export type NodeDetail = Schemas["NodeDetail"];
export type NodeRow = Schemas["NodeRow"];
export type Origin = Schemas["Origin"];
export type Pair = Schemas["Pair"];
export type PlanPreview = Schemas["PlanPreview"];
export type PlanTrial = Schemas["PlanTrial"];
export type Problem = Schemas["Problem"];
export type ProposedRule = Schemas["ProposedRule"];
export type RuleProposals = Schemas["RuleProposals"];
export type Producer = Schemas["Producer"];
export type PathEntry = Schemas["PathEntry"];
export type Run = Schemas["Run"];
export type Standing = Schemas["Standing"];
export type StepRange = Schemas["StepRange"];
export type Strip = Schemas["Strip"];
export type StripBucket = Schemas["StripBucket"];
export type Suspect = Schemas["Suspect"];
export type Suspects = Schemas["Suspects"];
export type Reach = Schemas["Reach"];
export type Summary = Schemas["Summary"];
export type Coverage = Schemas["Coverage"];
export type TrialTensor = Schemas["TrialTensor"];
export type TrendCell = Schemas["TrendCell"];
export type TrendPage = Schemas["TrendPage"];
export type TrendRow = Schemas["TrendRow"];
export type ValueCell = Schemas["ValueCell"];
export type ValueRow = Schemas["ValueRow"];
export type TreeLevels = Schemas["TreeLevels"];
export type TreeRow = Schemas["TreeRow"];
export type UnitPrecheck = Schemas["UnitPrecheck"];
export type Upload = Schemas["Upload"];
export type UploadRoom = Schemas["UploadRoom"];

export type ListOrder = "-created" | "created" | "name";

export interface Page<T> {
  items: T[];
  next: string | null;
  prev?: string | null;
  total: number;
  start?: number | null;
}
