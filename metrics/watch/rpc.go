package watch

import (
	"cmp"
	"strconv"

	"github.com/dgrdma/dgrdma/metrics"
	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
)

// RPC makes a source of a server of ONC RPC, under that name. of is what it serves by NFS; nil: other programs alone.
func RPC(s *rpc.Server, of *nfs3.Server, name string) metrics.RPCSource { return server{s, of, name} }

type server struct {
	rpc  *rpc.Server
	nfs  *nfs3.Server
	name string
}

func (s server) Of() any { return s.rpc }

func (s server) Look() (metrics.RPC, bool) {
	stats := s.rpc.Stats()
	v := metrics.RPC{Name: s.name, Connections: stats.Connections, Credits: stats.Credits, Counters: metrics.Counts(&stats)}
	for _, p := range s.rpc.Procedures() {
		v.Procedures = append(v.Procedures, metrics.RPCProcedure{
			Program: cmp.Or(p.Program.Name, strconv.FormatUint(uint64(p.Program.Number), 10)), Version: p.Program.Version, Name: p.Name(), TCP: p.TCP, RDMA: p.RDMA,
		})
	}
	if s.nfs != nil {
		nfs := s.nfs.Stats()
		v.NFS, v.ReadBytes, v.WriteBytes = make(map[string]uint64), nfs.Read, nfs.Written
		for status, n := range nfs.Calls {
			v.NFS[status.String()] = n
		}
	}
	return v, !stats.Closed
}
