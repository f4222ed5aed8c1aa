package nfs3

// Limits of what is decoded. Longer items are invalid XDR.
const (
	MaxHandle = 64      // octets of a handle (NFS3_FHSIZE)
	MaxName   = 255     // octets of a name of a directory's entry
	MaxPath   = 1024    // octets of a path of MOUNT (MNTPATHLEN)
	MaxTarget = 4096    // octets of the target of a symbolic link: Linux's PATH_MAX
	MaxData   = 1 << 20 // octets of one READ or WRITE: Linux's client has no larger ones
)

// maxArgName bounds names in arguments. A name between MaxName and that is one that the server
// answers, with ErrNameTooLong; a longer one makes the call invalid.
const maxArgName = 1024
