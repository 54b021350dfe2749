/** How far tests go that try many random inputs: a few in the first tier, and more in the second. */

export const isFull = process.env["ASSAY_TESTS"] === "full";
