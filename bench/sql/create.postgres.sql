-- A database for one mode, or for what it is compared with.
CREATE DATABASE bench_database TEMPLATE template0;
