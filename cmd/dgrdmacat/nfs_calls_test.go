package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
)

// TestNFSNamesAreBounded checks that nfs serve -v knows the paths of a bounded number of objects, each of bounded length, however many names a client looks up and however deep.
func TestNFSNamesAreBounded(t *testing.T) {
	var n nfsNames
	at := nfs3.Handle("root")
	for i := range 3 * mostNFSNames {
		s := &nfs3.Served{Call: &rpc.Call{Program: nfs3.Program}, Handle: at, Name: strings.Repeat("x", nfs3.MaxName), Found: nfs3.Handle(fmt.Sprint(i))}
		n.learn(s)
		if i%100 > 0 {
			at = s.Found // deeper and deeper
		}
		if got := len(n.of(s.Found)); len(n.paths) > mostNFSNames || got > nfs3.MaxPath+nfs3.MaxName+4 {
			t.Fatalf("after %d names: %d are known, and a path of %d bytes", i+1, len(n.paths), got)
		}
	}
}
