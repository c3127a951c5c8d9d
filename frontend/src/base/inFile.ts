declare const __IN_FILE__: boolean | undefined;

/** The page stands in a file with its replies: there is no server. Said by the build, so that either page holds only what it needs. */
export const IN_FILE: boolean = typeof __IN_FILE__ !== "undefined" && __IN_FILE__;
