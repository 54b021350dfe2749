/** What the application is made of. */

import { Module } from "@nestjs/common";
import { ThrottlerModule } from "@nestjs/throttler";
import { TypeOrmModule } from "@nestjs/typeorm";
import { ApiKey } from "./api-key.entity.ts";
import { TestRun } from "./test-run.entity.ts";
import { TestRunsController } from "./test-runs.controller.ts";
import { TestRunsService } from "./test-runs.service.ts";

const { PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE } = process.env;

@Module({
  imports: [
    TypeOrmModule.forRoot({
      type: "postgres",
      host: PGHOST!,
      port: Number(PGPORT),
      username: PGUSER!,
      password: PGPASSWORD!,
      database: PGDATABASE!,
      poolSize: 10,
      entities: [ApiKey, TestRun],
    }),
    TypeOrmModule.forFeature([ApiKey, TestRun]),
    ThrottlerModule.forRoot([{ ttl: 60_000, limit: 1_000_000_000 }]),
  ],
  controllers: [TestRunsController],
  providers: [TestRunsService],
})
export class AppModule {}
