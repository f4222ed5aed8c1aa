package nfs3

import "context"

// Cred says for whom an operation is done: a user and his groups, as AUTH_SYS has them. User 0 may do
// everything that the FS can do. A Cred does not change once it is given.
type Cred struct {
	UID, GID uint32
	GIDs     []uint32
}

// FS is a file system by handles: what a [Server] serves. Package localfs has two, and a
// [Client] is one, which may be any server's. One of the program embeds [ReadOnlyFS], and has few methods of its own.
//
// A method that panics ends the program, as a handler of package rpc does (rpc.Handler): the server does not recover. A method
// that calls code which may panic recovers itself, and returns an error.
//
// All methods may be called by many goroutines. Their errors should be a [Status], or have one in
// their chain, or be errors of package os; others are told to clients as ErrIO. An FS checks names
// ([CheckName]), types ([CheckRegular]) and permissions (the Cred; nil is user 0), and keeps what it is given no longer than
// the call.
//
// A WCC may be empty. The server then fills its After.
type FS interface {
	// Root returns the root directory.
	Root(ctx context.Context) (Object, error)
	// GetAttr returns the attributes of an object.
	GetAttr(ctx context.Context, c *Cred, h Handle) (Attr, error)
	// SetAttr changes attributes. If guard is not nil and not the Ctime of the object, it fails with
	// ErrNotSync.
	SetAttr(ctx context.Context, c *Cred, h Handle, set *SetAttr, guard *Time) (WCC, error)
	// Lookup finds an entry of a directory. "." is the directory, and ".." its parent; those of the root
	// are the root.
	Lookup(ctx context.Context, c *Cred, dir Handle, name string) (Object, error)
	// Access returns which of the rights in want are granted.
	Access(ctx context.Context, c *Cred, h Handle, want Access) (Access, error)
	// ReadLink returns the target of a symbolic link. It is the client that follows links.
	ReadLink(ctx context.Context, c *Cred, h Handle) (string, error)
	// Read fills dst with what the file has from offset on. It returns fewer octets only at the end of
	// the file, and says whether that was reached.
	Read(ctx context.Context, c *Cred, h Handle, dst []byte, offset uint64) (n int, eof bool, err error)
	// Write writes data, as safely as stable says, and says how safe it is.
	Write(ctx context.Context, c *Cred, h Handle, data []byte, offset uint64, stable Stable) (Written, WCC, error)
	// Create makes a regular file.
	Create(ctx context.Context, c *Cred, dir Handle, name string, how *CreateHow) (Object, WCC, error)
	// Mkdir makes a directory.
	Mkdir(ctx context.Context, c *Cred, dir Handle, name string, set *SetAttr) (Object, WCC, error)
	// Symlink makes a symbolic link.
	Symlink(ctx context.Context, c *Cred, dir Handle, name, target string, set *SetAttr) (Object, WCC, error)
	// Mknod makes a device, a socket or a FIFO; ErrBadType for other types.
	Mknod(ctx context.Context, c *Cred, dir Handle, name string, node *NodeSpec) (Object, WCC, error)
	// Remove removes an entry that is no directory.
	Remove(ctx context.Context, c *Cred, dir Handle, name string) (WCC, error)
	// Rmdir removes an empty directory.
	Rmdir(ctx context.Context, c *Cred, dir Handle, name string) (WCC, error)
	// Rename gives an entry another name, in the same or another directory, in one step. What has that
	// name is replaced.
	Rename(ctx context.Context, c *Cred, from Handle, name string, to Handle, newName string) (WCC, WCC, error)
	// Link gives a file one more name.
	Link(ctx context.Context, c *Cred, h, dir Handle, name string) (PostAttr, WCC, error)
	// ReadDir calls each with the entries of a directory from a position on, until it returns false.
	// It may not call the FS. plus asks for attributes and handles of the entries, where they are at hand.
	ReadDir(ctx context.Context, c *Cred, dir Handle, from DirPosition, plus bool, each func(*DirEntry) bool) (DirEnd, error)
	// FSStat says how full the file system is.
	FSStat(ctx context.Context, c *Cred, h Handle) (FSStat, error)
	// FSInfo says what the file system can do. The server bounds its sizes by [MaxData], and has defaults for those that are 0.
	FSInfo(ctx context.Context, c *Cred, h Handle) (FSInfo, error)
	// PathConf says which names there may be.
	PathConf(ctx context.Context, c *Cred, h Handle) (PathConf, error)
	// Commit returns when what was written before is on stable storage. It returns the verifier of
	// [Written].
	Commit(ctx context.Context, c *Cred, h Handle, offset uint64, count uint32) (verifier uint64, w WCC, err error)
}

// DirPosition is where ReadDir goes on: after the entry with this cookie; 0 is the beginning.
type DirPosition struct {
	Cookie   uint64
	Verifier uint64 // what [DirEnd] had, so that cookies of a directory that has become another one are found out
}

// DirEnd is how a ReadDir ended.
type DirEnd struct {
	Verifier uint64 // for the next ReadDir
	EOF      bool   // the directory has no more entries, if each has not returned false
}
