-- What a new connection says first.

-- name: check_client
-- While a statement runs the server looks each second whether its client is still there; refused where its platform cannot.
select set_config('client_connection_check_interval', '1000', false);

-- name: name_worker
-- A connection that listens for a worker says so, for those who ask whether one is there.
set application_name = 'rowlease worker'
