/** GET /projects/:projectId/test-runs. */

import { Controller, Get, Param, ParseUUIDPipe, Query, UseGuards } from "@nestjs/common";
import { ApiKeyGuard } from "./api-key.guard.ts";
import { ApiKeyThrottlerGuard } from "./api-key-throttler.guard.ts";
import { ListTestRunsDto } from "./list-test-runs.dto.ts";
import { TestRunsService } from "./test-runs.service.ts";

@Controller("projects/:projectId/test-runs")
@UseGuards(ApiKeyGuard, ApiKeyThrottlerGuard)
export class TestRunsController {
  constructor(private readonly testRuns: TestRunsService) {}

  @Get()
  list(@Param("projectId", ParseUUIDPipe) projectId: string, @Query() query: ListTestRunsDto) {
    return this.testRuns.list(projectId, query);
  }
}
