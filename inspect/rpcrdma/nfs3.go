package rpcrdma

// Procedures of NFS 3 that have a part of their own here.
const (
	nfs3ReadLink = 5
	nfs3Symlink  = 10
)

var (
	itemsFH   = []item{{"fh", handle}}
	itemsName = []item{{"dir", handle}, {"name", path}}
)

// arguments3 are those of NFS 3 (RFC 1813), by procedure.
var arguments3 = [...][]item{
	1:            itemsFH,
	2:            {{"fh", handle}, {"set", set}, {"guard", guard}},
	3:            itemsName,
	4:            {{"fh", handle}, {"access", access}},
	nfs3ReadLink: itemsFH,
	nfs3Read:     {{"fh", handle}, {"offset", u64}, {"count", u32}},
	nfs3Write:    {{"fh", handle}, {"offset", u64}, {"count", u32}, {"stable", stable}, {"data", fileData}},
	8:            {{"dir", handle}, {"name", path}, {"how", how}},
	9:            {{"dir", handle}, {"name", path}, {"set", set}},
	nfs3Symlink:  {{"dir", handle}, {"name", path}, {"set", set}, {"target", target}},
	11:           {{"dir", handle}, {"name", path}, {"type", node}},
	12:           itemsName,
	13:           itemsName,
	14:           {{"from_dir", handle}, {"from", path}, {"to_dir", handle}, {"to", path}},
	15:           {{"fh", handle}, {"dir", handle}, {"name", path}},
	16:           {{"dir", handle}, {"cookie", u64}, {"verifier", verifier}, {"count", u32}},
	17:           {{"dir", handle}, {"cookie", u64}, {"verifier", verifier}, {"dircount", u32}, {"maxcount", u32}},
	18:           itemsFH,
	19:           itemsFH,
	20:           itemsFH,
	21:           {{"fh", handle}, {"offset", u64}, {"count", u32}},
}

var itemsMade = []item{{"fh", postHandle}, {"attributes", postAttributes}, {"dir_attributes", wcc}}

// results3 are those after the status NFS3_OK, by procedure.
var results3 = [...][]item{
	1:            {{"attributes", attributes}},
	2:            {{"attributes", wcc}},
	3:            {{"fh", handle}, {"attributes", postAttributes}, {"dir_attributes", postAttributes}},
	4:            {{"attributes", postAttributes}, {"access", access}},
	nfs3ReadLink: {{"attributes", postAttributes}, {"target", target}},
	nfs3Read:     {{"attributes", postAttributes}, {"count", u32}, {"eof", flag}, {"data", fileData}},
	nfs3Write:    {{"attributes", wcc}, {"count", u32}, {"stable", stable}, {"verifier", verifier}},
	8:            itemsMade,
	9:            itemsMade,
	nfs3Symlink:  itemsMade,
	11:           itemsMade,
	12:           {{"dir_attributes", wcc}},
	13:           {{"dir_attributes", wcc}},
	14:           {{"from_dir_attributes", wcc}, {"to_dir_attributes", wcc}},
	15:           {{"attributes", postAttributes}, {"dir_attributes", wcc}},
	16:           {{"dir_attributes", postAttributes}, {"verifier", verifier}, {"entries", entries(false)}},
	17:           {{"dir_attributes", postAttributes}, {"verifier", verifier}, {"entries", entries(true)}},
	18: {{"attributes", postAttributes}, {"total_bytes", u64}, {"free_bytes", u64}, {"available_bytes", u64}, {"total_files", u64}, {"free_files", u64},
		{"available_files", u64}, {"invarsec", u32}},
	19: {{"attributes", postAttributes}, {"rtmax", u32}, {"rtpref", u32}, {"rtmult", u32}, {"wtmax", u32}, {"wtpref", u32}, {"wtmult", u32}, {"dtpref", u32},
		{"maxfilesize", u64}, {"time_delta", delta}, {"properties", bits}},
	20: {{"attributes", postAttributes}, {"linkmax", u32}, {"name_max", u32}, {"no_trunc", flag}, {"chown_restricted", flag}, {"case_insensitive", flag}, {"case_preserving", flag}},
	21: {{"attributes", wcc}, {"verifier", verifier}},
}

// delta is a difference of times.
func delta(r *fieldReader, name string) {
	r.group(name, func() { r.take([]item{{"seconds", u32}, {"nanoseconds", u32}}) })
}

// failures3 are those after another status, by procedure.
var failures3 = [...][]item{
	2:            {{"attributes", wcc}},
	3:            {{"dir_attributes", postAttributes}},
	4:            {{"attributes", postAttributes}},
	nfs3ReadLink: {{"attributes", postAttributes}},
	nfs3Read:     {{"attributes", postAttributes}},
	nfs3Write:    {{"attributes", wcc}},
	8:            {{"dir_attributes", wcc}},
	9:            {{"dir_attributes", wcc}},
	nfs3Symlink:  {{"dir_attributes", wcc}},
	11:           {{"dir_attributes", wcc}},
	12:           {{"dir_attributes", wcc}},
	13:           {{"dir_attributes", wcc}},
	14:           {{"from_dir_attributes", wcc}, {"to_dir_attributes", wcc}},
	15:           {{"attributes", postAttributes}, {"dir_attributes", wcc}},
	16:           {{"dir_attributes", postAttributes}},
	17:           {{"dir_attributes", postAttributes}},
	18:           {{"attributes", postAttributes}},
	19:           {{"attributes", postAttributes}},
	20:           {{"attributes", postAttributes}},
	21:           {{"attributes", wcc}},
}

// at returns the items of a procedure.
func at(table [][]item, procedure uint32) []item {
	if uint64(procedure) >= uint64(len(table)) {
		return nil
	}
	return table[procedure]
}

// arguments returns how those of a Call are read, nil if that is not known.
func (r *RPC) arguments() []item {
	switch {
	case !r.Known:
	case r.Program == nfs && r.ProgramVersion == 3:
		return at(arguments3[:], r.Procedure)
	case r.Program == mount && (r.Procedure == 1 || r.Procedure == 3):
		return []item{{"path", path}}
	case r.Program == nfsacl && r.ProgramVersion == 3 && r.Procedure == 1:
		return []item{{"fh", handle}, {"mask", bits}}
	}
	return nil
}

// results returns how those after a status are read, nil if that is not known.
func (r *RPC) results(status uint32) []item {
	switch {
	case !r.Known:
	case r.Program == nfs && r.ProgramVersion == 3 && status == 0:
		return at(results3[:], r.Procedure)
	case r.Program == nfs && r.ProgramVersion == 3:
		return at(failures3[:], r.Procedure)
	case r.Program == mount && r.ProgramVersion == 3 && r.Procedure == 1 && status == 0:
		return []item{{"fh", handle}, {"flavors", words}}
	case r.Program == nfsacl && r.ProgramVersion == 3 && r.Procedure == 1 && status == 0:
		return []item{{"attributes", postAttributes}, {"mask", bits}}
	}
	return nil
}

func (r *RPC) isNFS3(procedure uint32) bool {
	return r.Known && r.Program == nfs && r.ProgramVersion == 3 && r.Procedure == procedure
}
