package nfs3

import "github.com/dgrdma/dgrdma/rpc"

// Procedures of NFS version 3.
const (
	ProcNull        = 0
	ProcGetAttr     = 1
	ProcSetAttr     = 2
	ProcLookup      = 3
	ProcAccess      = 4
	ProcReadLink    = 5
	ProcRead        = 6
	ProcWrite       = 7
	ProcCreate      = 8
	ProcMkdir       = 9
	ProcSymlink     = 10
	ProcMknod       = 11
	ProcRemove      = 12
	ProcRmdir       = 13
	ProcRename      = 14
	ProcLink        = 15
	ProcReadDir     = 16
	ProcReadDirPlus = 17
	ProcFSStat      = 18
	ProcFSInfo      = 19
	ProcPathConf    = 20
	ProcCommit      = 21
)

// Procedures of MOUNT version 3.
const (
	MountNull    = 0
	MountMnt     = 1
	MountDump    = 2
	MountUmnt    = 3
	MountUmntAll = 4
	MountExport  = 5
)

// Longest results, without the data of READ and the target of READLINK. Those of READDIR and
// READDIRPLUS are as long as the caller allows, and a call says its own bound.
const (
	handleSize    = 4 + MaxHandle
	objectResults = 4 + 4 + handleSize + postAttrSize + wccSize
	dirResults    = 4 + MaxData
	mountResults  = 1 << 16 // arbitrary: lists of MOUNT
)

// Program is NFS version 3 (RFC 1813), with its binding to RDMA (RFC 8267): the data of WRITE and READ
// and the targets of SYMLINK and READLINK travel by reference.
var Program = &rpc.Program{
	Number: 100003, Version: 3, Name: "NFS",
	Procedures: []rpc.Procedure{
		ProcNull:        {Name: "NULL", Idempotent: true},
		ProcGetAttr:     {Name: "GETATTR", MaxResults: 4 + attrSize, Idempotent: true},
		ProcSetAttr:     {Name: "SETATTR", MaxResults: 4 + wccSize},
		ProcLookup:      {Name: "LOOKUP", MaxResults: 4 + handleSize + 2*postAttrSize, Idempotent: true},
		ProcAccess:      {Name: "ACCESS", MaxResults: 4 + postAttrSize + 4, Idempotent: true},
		ProcReadLink:    {Name: "READLINK", BulkResults: 1, MaxResults: 4 + postAttrSize + 4, Idempotent: true},
		ProcRead:        {Name: "READ", BulkResults: 1, MaxResults: 4 + postAttrSize + 12, Idempotent: true},
		ProcWrite:       {Name: "WRITE", BulkArgs: 1, MaxResults: 4 + wccSize + 16, Idempotent: true},
		ProcCreate:      {Name: "CREATE", MaxResults: objectResults},
		ProcMkdir:       {Name: "MKDIR", MaxResults: objectResults},
		ProcSymlink:     {Name: "SYMLINK", BulkArgs: 1, MaxResults: objectResults},
		ProcMknod:       {Name: "MKNOD", MaxResults: objectResults},
		ProcRemove:      {Name: "REMOVE", MaxResults: 4 + wccSize},
		ProcRmdir:       {Name: "RMDIR", MaxResults: 4 + wccSize},
		ProcRename:      {Name: "RENAME", MaxResults: 4 + 2*wccSize},
		ProcLink:        {Name: "LINK", MaxResults: 4 + postAttrSize + wccSize},
		ProcReadDir:     {Name: "READDIR", MaxResults: dirResults, Idempotent: true},
		ProcReadDirPlus: {Name: "READDIRPLUS", MaxResults: dirResults, Idempotent: true},
		ProcFSStat:      {Name: "FSSTAT", MaxResults: 4 + postAttrSize + 52, Idempotent: true},
		ProcFSInfo:      {Name: "FSINFO", MaxResults: 4 + postAttrSize + 48, Idempotent: true},
		ProcPathConf:    {Name: "PATHCONF", MaxResults: 4 + postAttrSize + 24, Idempotent: true},
		ProcCommit:      {Name: "COMMIT", MaxResults: 4 + wccSize + 8, Idempotent: true},
	},
}

// MountProgram is MOUNT version 3 (RFC 1813, appendix I), which gives the handle of an export's root.
var MountProgram = &rpc.Program{
	Number: 100005, Version: 3, Name: "MOUNT",
	Procedures: []rpc.Procedure{
		MountNull:    {Name: "NULL", Idempotent: true},
		MountMnt:     {Name: "MNT", MaxResults: 4 + handleSize + 4 + 4*maxFlavors, Idempotent: true},
		MountDump:    {Name: "DUMP", MaxResults: mountResults, Idempotent: true},
		MountUmnt:    {Name: "UMNT", Idempotent: true},
		MountUmntAll: {Name: "UMNTALL", Idempotent: true},
		MountExport:  {Name: "EXPORT", MaxResults: mountResults, Idempotent: true},
	},
}
