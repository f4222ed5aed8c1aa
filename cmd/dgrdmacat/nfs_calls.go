package main

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/nfs3"
)

// nfsNames has the paths of objects by their handles, as clients have looked them up: most calls have a handle alone.
type nfsNames struct {
	mu    sync.Mutex
	paths map[nfs3.Handle]string
}

// mostNFSNames is how many are kept. Then all are forgotten: clients look names up again and again. It is arbitrary.
const mostNFSNames = 4096

// learn notes what a call has told of names.
func (n *nfsNames) learn(s *nfs3.Served) {
	if s.Found == "" || s.Status != nfs3.OK {
		return
	}
	at := s.Name
	if s.Call.Program == nfs3.Program {
		at = n.in(s.Handle, s.Name)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.paths) >= mostNFSNames || n.paths == nil {
		n.paths = make(map[nfs3.Handle]string)
	}
	n.paths[s.Found] = at
}

// of returns the path of an object, or its handle.
func (n *nfsNames) of(h nfs3.Handle) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at, known := n.paths[h]; known {
		return at
	}
	return fmt.Sprintf("(handle %x)", string(h))
}

// in returns the path of a name in a directory, of which no more than the end is kept.
func (n *nfsNames) in(dir nfs3.Handle, name string) string {
	at := n.of(dir)
	if len(at)+len(name) > nfs3.MaxPath {
		at = "..."
	}
	if name == "." || name == ".." { // of which a path would lose what was asked for
		return strings.TrimSuffix(at, "/") + "/" + name
	}
	return path.Join(at, name)
}

// about says what a call was of.
func (n *nfsNames) about(s *nfs3.Served) (what string) {
	switch {
	case s.Call.Program == nfs3.MountProgram:
		what = s.Name
	case s.Handle == "":
	case s.Name == "":
		what = n.of(s.Handle)
	default:
		what = n.in(s.Handle, s.Name)
	}
	switch {
	case s.ToDir != "":
		what += " to " + n.in(s.ToDir, s.To)
	case s.To != "":
		what += " -> " + s.To
	}
	what = text.Plain(what)
	if s.Call.Program == nfs3.Program && (s.Call.Procedure == nfs3.ProcRead || s.Call.Procedure == nfs3.ProcWrite) {
		what += fmt.Sprintf(", %s at %d", count(s.Count, "byte"), s.Offset)
	}
	return what
}

// done prints a call.
func (s *nfsServer) done(d *nfs3.Served) {
	what, came := s.names.about(d), d.Status.Error()
	switch {
	case d.Err != nil:
		came = d.Err.Error()
	case d.Status == nfs3.OK:
		came = "ok"
	}
	s.names.learn(d)
	if what != "" {
		what = " " + what
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := fmt.Fprintf(s.std.out, "%s %v over %s, XID %#x%s: %s%s: %s, %v\n", time.Now().Format("15:04:05.000000"), d.Call.RemoteAddr(), d.Call.Transport(),
		d.Call.XID, userOf(d), procedureName(d.Call), what, came, d.Took.Round(time.Microsecond)); err != nil {
		s.stop(untold{err})
	}
}

// userOf says which user a caller claims to be, and for which one its call was carried out.
func userOf(d *nfs3.Served) string {
	sys, err := d.Call.Auth.Sys()
	switch {
	case err != nil && d.Cred == nil:
		return ""
	case err != nil:
		return fmt.Sprintf(", user %d", d.Cred.UID)
	case d.Cred != nil && d.Cred.UID != sys.UID:
		return fmt.Sprintf(", user %d as %d", sys.UID, d.Cred.UID)
	}
	return fmt.Sprintf(", user %d", sys.UID)
}
