/** All that is shown in Chinese, loaded when somebody reads Chinese. */
export { figures, kinds, plotly, said, ui } from "../../../backend/dumpscope/texts/zh.json";
