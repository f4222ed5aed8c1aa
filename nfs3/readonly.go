package nfs3

import "context"

// ReadOnlyFS is what a read-only [FS] embeds, so that it has to have these methods only: Root, GetAttr, Lookup, Read and ReadDir.
//
// All that changes something fails with [ErrROFS]: an FS that can do some of it overrides these methods. Without an Access of its
// own, clients are told that all may be read, and Read decides; [Cred.Granted] goes by modes. Without a ReadLink of its own it has
// no symbolic links. FSInfo and PathConf leave the limits to the defaults of the server.
type ReadOnlyFS struct{}

// SetAttr fails with ErrROFS.
func (ReadOnlyFS) SetAttr(context.Context, *Cred, Handle, *SetAttr, *Time) (WCC, error) {
	return WCC{}, ErrROFS
}

// Access grants all that changes nothing.
func (ReadOnlyFS) Access(_ context.Context, _ *Cred, _ Handle, want Access) (Access, error) {
	return want & (AccessRead | AccessLookup | AccessExecute), nil
}

// ReadLink fails with ErrInval: the object is no symbolic link.
func (ReadOnlyFS) ReadLink(context.Context, *Cred, Handle) (string, error) { return "", ErrInval }

// Write fails with ErrROFS.
func (ReadOnlyFS) Write(context.Context, *Cred, Handle, []byte, uint64, Stable) (Written, WCC, error) {
	return Written{}, WCC{}, ErrROFS
}

// Create fails with ErrROFS.
func (ReadOnlyFS) Create(context.Context, *Cred, Handle, string, *CreateHow) (Object, WCC, error) {
	return Object{}, WCC{}, ErrROFS
}

// Mkdir fails with ErrROFS.
func (ReadOnlyFS) Mkdir(context.Context, *Cred, Handle, string, *SetAttr) (Object, WCC, error) {
	return Object{}, WCC{}, ErrROFS
}

// Symlink fails with ErrROFS.
func (ReadOnlyFS) Symlink(context.Context, *Cred, Handle, string, string, *SetAttr) (Object, WCC, error) {
	return Object{}, WCC{}, ErrROFS
}

// Mknod fails with ErrROFS.
func (ReadOnlyFS) Mknod(context.Context, *Cred, Handle, string, *NodeSpec) (Object, WCC, error) {
	return Object{}, WCC{}, ErrROFS
}

// Remove fails with ErrROFS.
func (ReadOnlyFS) Remove(context.Context, *Cred, Handle, string) (WCC, error) { return WCC{}, ErrROFS }

// Rmdir fails with ErrROFS.
func (ReadOnlyFS) Rmdir(context.Context, *Cred, Handle, string) (WCC, error) { return WCC{}, ErrROFS }

// Rename fails with ErrROFS.
func (ReadOnlyFS) Rename(context.Context, *Cred, Handle, string, Handle, string) (WCC, WCC, error) {
	return WCC{}, WCC{}, ErrROFS
}

// Link fails with ErrROFS.
func (ReadOnlyFS) Link(context.Context, *Cred, Handle, Handle, string) (PostAttr, WCC, error) {
	return PostAttr{}, WCC{}, ErrROFS
}

// FSStat says that the file system is full.
func (ReadOnlyFS) FSStat(context.Context, *Cred, Handle) (FSStat, error) { return FSStat{}, nil }

// FSInfo leaves all to the defaults.
func (ReadOnlyFS) FSInfo(context.Context, *Cred, Handle) (FSInfo, error) {
	return FSInfo{Properties: Homogeneous}, nil
}

// PathConf says that names are exact.
func (ReadOnlyFS) PathConf(context.Context, *Cred, Handle) (PathConf, error) {
	return PathConf{NoTrunc: true, ChownRestricted: true, CasePreserving: true}, nil
}

// Commit does nothing: nothing was written.
func (ReadOnlyFS) Commit(context.Context, *Cred, Handle, uint64, uint32) (uint64, WCC, error) {
	return 0, WCC{}, nil
}
