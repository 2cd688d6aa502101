-- Makes the settings of the session that listens and holds the presence lock. The server probes for a
-- dead client; otherwise it would keep the lock of a machine that lost power for hours. The session has
-- no idle timeout, because it is idle most of the time. It does not wait long for a presence lock that the server still keeps for a dead
-- session, because a wait holds back vacuum and, in a shared session, other workers.
SET search_path = pg_catalog, pg_temp;
SET tcp_keepalives_idle = 15;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 3;
SET idle_session_timeout = 0;
SET statement_timeout = '10s';
SET lock_timeout = '200ms';
