// Package metrics shows endpoints, links and hosts of RDMA over TCP while they work: as a collector for
// Prometheus, and as one JSON object for programs and people, such as
// "dgrdmacat top".
//
//	c := watch.New()
//	c.Add(watch.Host(h)) // with its links; or watch.Endpoint(e)
//	c.AddRDMA(watch.RDMA(v, "tcp:10.0.0.1:7471")) // of package verbs
//	prometheus.MustRegister(c)
//	http.Handle(metrics.ViewPath, c.ViewHandler())
//
// A collector shows sources: see [Source]. Package metrics/watch makes them of endpoints
// and hosts of links; other layers can be sources of their own. A program without a
// registry serves [Collector.Handler], which answers at /metrics for this collector alone
// and at /debug/dgrdma with a [View]. A source that is closed is no longer shown.
//
// # Prometheus
//
// docs/metrics.md lists all metrics. Every metric but the first two, and those of RDMA over TCP and RPC, has the label
// endpoint, as "7@10.0.0.1:7100": id and address.
//
//	dgrdma_build_info   version, revision and goversion of this module in the program
//	dgrdma_metrics_*    who reads these metrics, see [Collector.Places]
//	dgrdma_endpoint_*   an endpoint; counters are of all its connections, closed ones included
//	dgrdma_transport_*  its wire
//	dgrdma_peer_*       one connection: label peer, like endpoint
//	dgrdma_host_*       all links of a host: label direction, out or in
//	dgrdma_link_*       one link: labels peer, port, link (a number), direction
//	dgrdma_rdma_*       a host of RDMA over TCP, all its queue pairs: label host, in place of
//	                    endpoint
//	dgrdma_rpc_*        a server of ONC RPC, over TCP and RDMA: label server, in place of endpoint
//	dgrdma_nfs_*        what it serves by NFS: the same
//
// The counters of endpoints and peers are [dgrdma.Counters], under the names in its tags.
// Refused frames have the label reason; peers have only the reasons that occurred. A value
// that is not known, such as the round-trip time to a peer that has not answered yet, is
// left out.
//
// Two metrics are histograms, of all connections of an endpoint, with bounds that double from
// 1.024 us to 17.2 s:
//
//	dgrdma_endpoint_completion_seconds  from the first frame of a transaction to its acknowledgement;
//	                                    its count is dgrdma_endpoint_transactions_done_total
//	dgrdma_endpoint_round_trip_seconds  from a frame that was sent once to its acknowledgement
//
// # Cost
//
// The endpoints count anyway; metrics add nothing. A scrape holds the lock of an endpoint
// for about a microsecond for each of its peers; the answer for 1,000 peers has 3 MB and
// takes some 60 ms of a processor.
//
// # Limits
//
// There is no authentication: whoever reaches the handler reads addresses, ids and
// names of ports. Listen on loopback, or put an authenticating proxy in front.
//
// [dgrdma.Counters]: https://pkg.go.dev/github.com/dgrdma/dgrdma/dgrdma#Counters
package metrics
