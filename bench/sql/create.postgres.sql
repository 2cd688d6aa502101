-- Creates a database for one mode, or for the designs that durable is compared with.
CREATE DATABASE bench_database TEMPLATE template0;
