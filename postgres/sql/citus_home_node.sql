-- Returns how Citus has distributed the table of runs: n means that the schema lies on one node as a whole. Then also
-- whether this is the node, and the node's address. Without a row the tables are undistributed, and are in this database.
-- Only a Citus has these tables.
SELECT p.partmethod::text, placement.groupid = (SELECT here.groupid FROM pg_dist_local_group AS here), node.nodename::text, node.nodeport::integer
FROM pg_dist_partition AS p
JOIN pg_dist_shard AS shard ON shard.logicalrelid = p.logicalrelid
JOIN pg_dist_placement AS placement ON placement.shardid = shard.shardid AND placement.shardstate = 1
JOIN pg_dist_node AS node ON node.groupid = placement.groupid AND node.noderole::text = 'primary'
WHERE p.logicalrelid = 'durable.run'::regclass
ORDER BY placement.shardid, placement.groupid
LIMIT 1;
