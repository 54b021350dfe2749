-- Which version of Assay a runner is.

alter table runner add column version text; -- as it said when it registered; null: it has not
