package main

import (
	"flag"
	"slices"
	"strings"

	"github.com/dgrdma/dgrdma/rpc"
)

// versionFlag is which versions of RPC-over-RDMA are spoken.
type versionFlag struct{ word string }

// rpcrdmaVersions are what the flag takes.
var rpcrdmaVersions = []string{"1", "2", "any"}

func (v *versionFlag) register(fs *flag.FlagSet) {
	v.word = "any"
	fs.Var(&oneOf{&v.word, rpcrdmaVersions}, "rpcrdma", "speak this `version` of RPC-over-RDMA alone: 1, as Linux does, or 2; any is the highest that both sides speak")
}

func (v *versionFlag) check() error {
	if !slices.Contains(rpcrdmaVersions, v.word) {
		return badUsage("--rpcrdma %s: need one of %s", v.word, strings.Join(rpcrdmaVersions, ", "))
	}
	return nil
}

// of checks the flag for a server at an address.
func (v *versionFlag) of(at rpcAddress) error {
	if v.versions() != 0 && at.transport != "rdma" {
		return badUsage("--rpcrdma %s: %v is reached over TCP alone: need an address that begins with rdma:", v.word, at)
	}
	return nil
}

func (v *versionFlag) versions() rpc.Versions {
	return map[string]rpc.Versions{"1": rpc.V1, "2": rpc.V2}[v.word]
}
