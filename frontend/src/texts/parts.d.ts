/** The catalogues as `bundling/texts.ts` cuts them. */
declare module "virtual:texts/*" {
  const part: import("./catalogues").Part;
  export default part;
}
