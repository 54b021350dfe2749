-- A delivery may end because there is nothing to send: that is neither a success nor a failure.
alter table delivery drop constraint delivery_status_check,
  add constraint delivery_status_check check (status in ('pending', 'sent', 'inapplicable', 'failed'));
