/**
 * The list of test runs by NestJS with TypeORM on Node, as a competent team writes it and as the manuals show it: the default
 * platform (Express), a module, a controller, a service, guards, a DTO with class-validator, entities and their
 * repositories, pg's own pool of 10. Neither tuned nor crippled.
 */

import "reflect-metadata";
import { ValidationPipe } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { AppModule } from "./app.module.ts";

const app = await NestFactory.create(AppModule, { logger: ["error", "warn"] });
app.setGlobalPrefix("api/v1");
app.useGlobalPipes(new ValidationPipe({ transform: true, whitelist: true, forbidNonWhitelisted: true }));
await app.listen(0, "127.0.0.1");
console.log(await app.getUrl());
