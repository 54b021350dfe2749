/** A key of a team or of one of its projects. */

import { Column, Entity, PrimaryColumn } from "typeorm";

@Entity("api_key")
export class ApiKey {
  @PrimaryColumn("uuid", { name: "team_id" })
  teamId!: string;

  @PrimaryColumn("uuid")
  id!: string;

  @Column("uuid", { name: "project_id", nullable: true })
  projectId!: string | null;

  @Column("bytea")
  digest!: Buffer;

  @Column("timestamptz", { name: "revoked_at", nullable: true })
  revokedAt!: Date | null;
}
