/** Describes the bodies of requests in the OpenAPI document. */

import * as v from "valibot";
import { emptyBody, type Route } from "../request/route.ts";
import { newVariable } from "../schema/environments.ts";
import { nativeReport } from "../schema/reports.ts";
import { convert, type Json } from "./openapi_schemas.ts";

export function requestBody(route: Route): Json {
  if (route.body === undefined || route.body === emptyBody) return {};
  if (route.body === "text" && typeof route.example.body === "string") {
    const text = { schema: { type: "string", format: "codeowners" }, example: route.example.body };
    return { requestBody: { required: true, description: "The text of the file", content: { "text/plain": text } } };
  }
  if (route.body === "text")
    return {
      requestBody: {
        required: true,
        description:
          "A JSON object that maps names to a value or to { value, secret }, or with text/plain the text of a .env file, " +
          "whose values are all secret. {} removes all variables; an empty body is answered 400",
        content: {
          "application/json": {
            schema: {
              type: "object",
              additionalProperties: {
                anyOf: [{ type: "string" }, convert(newVariable, "input")],
                description: "A value, which is then secret, or an object with value and secret",
              },
            },
            example: { BASE_URL: { value: "https://staging.shop.example", secret: false }, API_TOKEN: "s3cret" },
          },
          "text/plain": {
            schema: { type: "string", format: "dotenv" },
            example: 'BASE_URL=https://staging.shop.example\nAPI_TOKEN="s3cret"\n',
          },
        },
      },
    };
  if (route.body === "files")
    return {
      requestBody: {
        required: true,
        content: {
          "multipart/form-data": {
            schema: {
              type: "object",
              required: ["attachment"],
              properties: {
                attachment: {
                  type: "array",
                  items: { type: "string", format: "binary" },
                  description: "The files; the file name of a part is the path under which the report names it",
                },
              },
            },
          },
        },
      },
    };
  if (route.body === "file")
    return {
      requestBody: {
        required: true,
        description: "The content of the file. Content-Encoding gzip and zstd are taken, and undone",
        content: { "*/*": { schema: { type: "string", format: "binary" } } },
      },
    };
  if (route.body !== "upload") {
    // No body is an empty one.
    const required = !v.safeParse(route.body, {}).success;
    const schema = convert(route.body, "input");
    const { body: example } = route.example;
    const json = { schema, ...(example === undefined ? {} : { example }) };
    return { requestBody: { required, content: { "application/json": json } } };
  }
  const form = {
    type: "object",
    description: "One or more files, merged into one run; every query parameter may be a form field instead",
    additionalProperties: true,
  };
  const native = {
    ...convert(nativeReport, "input"),
    description: "A report in the JSON format of Assay",
    anyOf: [{ required: ["cases"] }, { required: ["passed", "failed", "skipped"] }],
  };
  return {
    requestBody: {
      required: true,
      description:
        "The report as the body, with any content type: the format is recognised from the content. Alternatively " +
        "multipart/form-data with one or more files, which are merged into one run; every query parameter may be a form " +
        "field instead. Parts named attachment are files that explain results. Content-Encoding gzip and zstd are accepted, and so are compressed files",
      content: {
        "application/json": {
          schema: native,
          example: { taskSlug: "unit", passed: 3, failed: 0, skipped: 1 },
        },
        "application/xml": {
          schema: {
            type: "string",
            description: "A report in XML, such as JUnit, TRX, NUnit, xUnit, TestNG, CTest or Robot Framework",
          },
        },
        "multipart/form-data": { schema: form },
        "*/*": { schema: { type: "string", format: "binary", description: "Any of the formats" } },
      },
    },
  };
}
