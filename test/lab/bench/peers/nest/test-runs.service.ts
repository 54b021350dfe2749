/** Pages of test runs, newest first. */

import { BadRequestException, Injectable } from "@nestjs/common";
import { InjectRepository } from "@nestjs/typeorm";
import { Repository } from "typeorm";
import type { ListTestRunsDto } from "./list-test-runs.dto.ts";
import { TestRun } from "./test-run.entity.ts";

const PLACE = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\n([0-9a-f-]{36})$/;

@Injectable()
export class TestRunsService {
  constructor(@InjectRepository(TestRun) private readonly testRuns: Repository<TestRun>) {}

  async list(projectId: string, { limit, cursor }: ListTestRunsDto) {
    const query = this.testRuns
      .createQueryBuilder("run")
      .where("run.projectId = :projectId", { projectId })
      .orderBy("run.completedAt", "DESC")
      .addOrderBy("run.id", "DESC")
      .limit(limit + 1);
    if (cursor === undefined) {
      query.andWhere("run.completedAt is not null");
    } else {
      const [, completedAt, id] = PLACE.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
      if (id === undefined) throw new BadRequestException("Bad cursor");
      query.andWhere("(run.completedAt, run.id) < (:completedAt, :id)", { completedAt, id });
    }
    const runs = await query.getMany();
    const hasMore = runs.length > limit;
    const page = runs.slice(0, limit);
    return {
      data: page.map(({ executionId, taskSlug, completedAt, passed, failed, skipped }) => ({
        executionId,
        taskSlug,
        completedAt,
        passed,
        failed,
        skipped,
        total: passed + failed + skipped,
      })),
      pagination: { hasMore, ...(hasMore ? { cursor: toCursor(page.at(-1)!) } : {}) },
    };
  }
}

function toCursor({ completedAt, id }: TestRun): string {
  return Buffer.from(`${completedAt.toISOString()}\n${id}`).toString("base64url");
}
