import { describe, expect, it } from "vitest";
import { splitSearch } from "../../../src/base/address/searchTerms";

describe("a search", () => {
  it("is the server's where it names no place", () => {
    expect(splitSearch(" api:linear  err>1 ")).toEqual({ query: "api:linear  err>1", rank: null, step: null });
  });

  it("gives up its rank and step", () => {
    expect(splitSearch("rank:3 relu step=12")).toEqual({ query: "relu", rank: 3, step: 12 });
    expect(splitSearch("Rank:0")).toEqual({ query: "", rank: 0, step: null });
  });

  it("keeps what only looks like a place", () => {
    for (const query of ["rank:", "rank:x", "-rank:1", "myrank:1", "rank:1x"]) {
      expect(splitSearch(query)).toEqual({ query, rank: null, step: null });
    }
  });
});
