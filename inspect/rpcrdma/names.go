package rpcrdma

// Programs.
const (
	nfs      = 100003
	portmap  = 100000
	mount    = 100005
	nlm      = 100021
	nsm      = 100024
	nfsacl   = 100227
	callback = 0x40000000 // where Linux has the callbacks of NFS 4
)

// program is one whose procedures have names, by version.
type program struct {
	name       string
	procedures map[uint32][]string
}

var nfs4 = []string{"NULL", "COMPOUND"}

// programs are those that Linux uses on RDMA or with it. The names of NFS 3 and MOUNT 3 are those of package nfs3, which this
// package does not import: that one has sockets under it.
var programs = map[uint32]*program{
	nfs: {"NFS", map[uint32][]string{
		2: {"NULL", "GETATTR", "SETATTR", "ROOT", "LOOKUP", "READLINK", "READ", "WRITECACHE", "WRITE", "CREATE", "REMOVE", "RENAME", "LINK", "SYMLINK", "MKDIR", "RMDIR", "READDIR", "STATFS"},
		3: {"NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE", "CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "READDIR", "READDIRPLUS", "FSSTAT", "FSINFO", "PATHCONF", "COMMIT"},
		4: nfs4,
	}},
	callback: {"NFS callback", map[uint32][]string{1: {"CB_NULL", "CB_COMPOUND"}, 4: {"CB_NULL", "CB_COMPOUND"}}},
	portmap: {"portmap", map[uint32][]string{
		2: {"NULL", "SET", "UNSET", "GETPORT", "DUMP", "CALLIT"},
		3: {"NULL", "SET", "UNSET", "GETADDR", "DUMP", "CALLIT", "GETTIME", "UADDR2TADDR", "TADDR2UADDR"},
		4: {"NULL", "SET", "UNSET", "GETADDR", "DUMP", "BCAST", "GETTIME", "UADDR2TADDR", "TADDR2UADDR", "GETVERSADDR", "INDIRECT", "GETADDRLIST", "GETSTAT"},
	}},
	mount: {"MOUNT", map[uint32][]string{
		1: mounts, 2: append(mounts[:len(mounts):len(mounts)], "PATHCONF"), 3: mounts,
	}},
	nfsacl: {"NFSACL", map[uint32][]string{
		2: {"NULL", "GETACL", "SETACL", "GETATTR", "ACCESS"},
		3: {"NULL", "GETACL", "SETACL"},
	}},
	nlm: {"NLM", nil},
	nsm: {"NSM", nil},
}

var mounts = []string{"NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"}

// hasStatus reports whether the results of a procedure begin with a status.
func (r *RPC) hasStatus() bool {
	if !r.Known || r.Procedure == 0 {
		return false
	}
	return r.Program == nfs || r.Program == callback || r.Program == nfsacl || r.Program == mount && r.Procedure == 1
}
