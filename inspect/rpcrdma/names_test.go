package rpcrdma

import (
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
)

// TestNames checks the names of procedures against package nfs3, which has them, too.
func TestNames(t *testing.T) {
	for _, p := range []*rpc.Program{nfs3.Program, nfs3.MountProgram} {
		own := programs[p.Number]
		names := own.procedures[p.Version]
		if own.name != p.Name || len(names) != len(p.Procedures) {
			t.Fatalf("%s: %d procedures, want %s: %d", own.name, len(names), p.Name, len(p.Procedures))
		}
		for i := range p.Procedures {
			if names[i] != p.Procedures[i].Name {
				t.Errorf("%s %d: %s, want %s", p.Name, i, names[i], p.Procedures[i].Name)
			}
		}
	}
	for _, c := range []struct {
		rpc  RPC
		want string
	}{
		{RPC{Known: true, Program: 100003, ProgramVersion: 3, Procedure: 17}, "NFS 3 READDIRPLUS"},
		{RPC{Known: true, Program: 100003, ProgramVersion: 3, Procedure: 22}, "NFS 3 procedure 22"},
		{RPC{Known: true, Program: 100003, ProgramVersion: 9}, "NFS 9 procedure 0"},
		{RPC{Known: true, Program: 100005, ProgramVersion: 2, Procedure: 6}, "MOUNT 2 PATHCONF"},
		{RPC{Known: true, Program: 100005, ProgramVersion: 3, Procedure: 1}, "MOUNT 3 MNT"},
		{RPC{Known: true, Program: 100227, ProgramVersion: 3, Procedure: 1}, "NFSACL 3 GETACL"},
		{RPC{Known: true, Program: 100000, ProgramVersion: 2, Procedure: 3}, "portmap 2 GETPORT"},
		{RPC{Known: true, Program: 100021, ProgramVersion: 4, Procedure: 2}, "NLM 4 procedure 2"},
		{RPC{Known: true, Program: 0x20000001, ProgramVersion: 1, Procedure: 2}, "program 0x20000001 version 1 procedure 2"},
		{RPC{Known: true, Program: 7, ProgramVersion: 8, Procedure: 9}, "program 7 version 8 procedure 9"},
		{RPC{}, "unknown procedure"},
	} {
		if got := c.rpc.Name(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
