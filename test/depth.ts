/** Whether tests that try many random inputs, or compare two ways in random histories, go as far as in the second tier. */

export const isFull = process.env["ASSAY_TESTS"] === "full";
