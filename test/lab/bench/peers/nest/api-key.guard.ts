/** Lets in who has a live key of the project in the path. */

import { createHash } from "node:crypto";
import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  NotFoundException,
  UnauthorizedException,
} from "@nestjs/common";
import { InjectRepository } from "@nestjs/typeorm";
import { IsNull, Repository } from "typeorm";
import { ApiKey } from "./api-key.entity.ts";

@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(@InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest();
    const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? "") ?? [];
    if (token === undefined) throw new UnauthorizedException();
    const digest = createHash("sha256").update(token).digest();
    const apiKey = await this.apiKeys.findOneBy({ digest, revokedAt: IsNull() });
    if (!apiKey) throw new UnauthorizedException();
    if (apiKey.projectId !== request.params.projectId) throw new NotFoundException();
    request.apiKey = apiKey;
    return true;
  }
}
