/** A test run, as far as the list tells of it. */

import { Column, Entity, PrimaryColumn } from "typeorm";

@Entity("test_run")
export class TestRun {
  @PrimaryColumn("uuid", { name: "project_id" })
  projectId!: string;

  @PrimaryColumn("uuid")
  id!: string;

  @Column("uuid", { name: "execution_id" })
  executionId!: string;

  @Column("text", { name: "task_slug" })
  taskSlug!: string;

  @Column("timestamptz", { name: "completed_at", nullable: true })
  completedAt!: Date;

  @Column("int")
  passed!: number;

  @Column("int")
  failed!: number;

  @Column("int")
  skipped!: number;
}
