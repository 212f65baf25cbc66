package capi

//lint:file-ignore U1000 the fields are those of the C structs, whether we use them or not

import "unsafe"

// The argument structs of pjrt_c_api.h. Go memory that C reads is typed unsafe.Pointer, so that the collector sees it
// through the struct; handles and memory of the plugin are uintptr, which it must not follow.

// header starts every struct.
type header struct {
	size uintptr
	ext  uintptr
}

func (h *header) hdr() *header { return h }

type (
	// handleArgs: a handle in, nothing out.
	handleArgs struct {
		header
		h uintptr
	}
	// wordArgs: a handle in, one word out (a handle, a size or an int64).
	wordArgs struct {
		header
		h   uintptr
		out uintptr
	}
	intArgs struct {
		header
		h   uintptr
		out int32
	}
	boolArgs struct {
		header
		h   uintptr
		out bool
	}
	// listArgs: a handle in, a pointer of the plugin's and a count out.
	listArgs struct {
		header
		h uintptr
		p uintptr
		n uintptr
	}
	// countFirstArgs: as listArgs, in the other order (cost analysis, device attributes).
	countFirstArgs struct {
		header
		h uintptr
		n uintptr
		p uintptr
	}
	pairArgs struct { // two handles in, one out: copies
		header
		h   uintptr
		to  uintptr
		out uintptr
	}
	emptyArgs      struct{ header }
	attributesArgs struct {
		header
		p uintptr
		n uintptr
	}
	onReadyArgs struct {
		header
		event    uintptr
		callback uintptr
		user     uintptr
	}
	namedValue struct {
		header
		name     unsafe.Pointer
		nameSize uintptr
		kind     int32
		_        int32
		value    uint64 // a union
		count    uintptr
	}
	clientCreateArgs struct {
		header
		options    unsafe.Pointer
		numOptions uintptr
		get        uintptr
		getUser    uintptr
		put        uintptr
		putUser    uintptr
		client     uintptr // out
		tryGet     uintptr
		tryGetUser uintptr
	}
	programArgs struct {
		header
		code       unsafe.Pointer
		codeSize   uintptr
		format     unsafe.Pointer
		formatSize uintptr
	}
	clientCompileArgs struct {
		header
		client      uintptr
		program     *programArgs
		options     unsafe.Pointer
		optionsSize uintptr
		exe         uintptr // out
	}
	compileArgs struct {
		header
		topology    uintptr
		program     *programArgs
		options     unsafe.Pointer
		optionsSize uintptr
		client      uintptr
		exe         uintptr // out
	}
	assignmentArgs struct {
		header
		client     uintptr
		replicas   int32
		partitions int32
		size       uintptr
		ids        unsafe.Pointer
	}
	bufferFromHostArgs struct {
		header
		client     uintptr
		data       unsafe.Pointer
		typ        int32
		_          int32
		dims       unsafe.Pointer
		numDims    uintptr
		strides    unsafe.Pointer
		numStrides uintptr
		semantics  int32
		_          int32
		device     uintptr
		memory     uintptr
		layout     unsafe.Pointer
		done       uintptr // out
		buffer     uintptr // out
	}
	layoutArgs struct { // PJRT_Buffer_MemoryLayout with the tiled member of its union
		header
		tiled struct {
			header
			minorToMajor     unsafe.Pointer
			minorToMajorSize uintptr
			tileDims         unsafe.Pointer
			tileDimSizes     unsafe.Pointer
			numTiles         uintptr
		}
		kind int32
		_    int32
	}
	toHostArgs struct {
		header
		src     uintptr
		layout  *layoutArgs
		dst     unsafe.Pointer
		dstSize uintptr
		event   uintptr // out
	}
	executeOptions struct {
		header
		sendCallbacks     uintptr
		recvCallbacks     uintptr
		numSend           uintptr
		numRecv           uintptr
		launchID          int32
		_                 int32
		nonDonatable      unsafe.Pointer
		numNonDonatable   uintptr
		context           uintptr
		callLocation      uintptr
		numTasks          uintptr
		taskIDs           uintptr
		incarnations      uintptr
		multiSlice        uintptr // from here on later than 0.81
		majorToMinor      bool
		hloOutCallbacks   uintptr
		numHLOOutCallback uintptr
	}
	executeArgs struct {
		header
		exe        uintptr
		options    *executeOptions
		args       unsafe.Pointer
		numDevices uintptr
		numArgs    uintptr
		outputs    unsafe.Pointer
		events     unsafe.Pointer
		device     uintptr
	}
	memoryStatsArgs struct {
		header
		exe   uintptr
		stats CompiledMemoryStats
	}
	deviceStatsArgs struct {
		header
		device     uintptr
		bytesInUse int64
		optional   [10]struct { // in the order of DeviceMemoryStats
			value int64
			set   bool
		}
	}
	defaultLayoutArgs struct {
		header
		client  uintptr
		typ     int32
		dims    unsafe.Pointer
		numDims uintptr
		layout  uintptr
	}
	serializeLayoutArgs struct {
		header
		layout  uintptr
		p, n    uintptr
		backing uintptr
		deleter uintptr
	}
	serializeArgs struct { // of executables and topologies
		header
		h       uintptr
		p       uintptr
		n       uintptr
		backing uintptr
		deleter uintptr
	}
	deserializeArgs struct {
		header
		client      uintptr
		data        unsafe.Pointer
		size        uintptr
		exe         uintptr // out
		options     unsafe.Pointer
		optionsSize uintptr
	}
	outputDimsArgs struct {
		header
		exe      uintptr
		num      uintptr
		dims     uintptr
		dimSizes uintptr
	}
	optimizedProgramArgs struct {
		header
		exe     uintptr
		program *programArgs
	}
	topologyCreateArgs struct {
		header
		name       unsafe.Pointer
		nameSize   uintptr
		options    unsafe.Pointer
		numOptions uintptr
		topology   uintptr // out
	}
	topologyDeserializeArgs struct {
		header
		data     unsafe.Pointer
		size     uintptr
		topology uintptr // out
	}
	createAliasArgs struct {
		header
		client  uintptr
		memory  uintptr
		dims    unsafe.Pointer
		numDims uintptr
		typ     int32
		_       int32
		layout  *layoutArgs
		buffer  uintptr // out
		fulfill uintptr // out
	}
	fulfillAliasArgs struct {
		header
		client      uintptr
		buffer      uintptr
		code        int32
		_           int32
		message     unsafe.Pointer
		messageSize uintptr
		fulfill     uintptr
	}
	keyValueGetArgs struct {
		header
		key       uintptr
		keySize   uintptr
		timeoutMS int32
		_         int32
		makeError uintptr // PJRT_CallbackError*
		user      uintptr
		value     uintptr // out
		valueSize uintptr // out
		deleter   uintptr // out
	}
	keyValueTryGetArgs struct {
		header
		key       uintptr
		keySize   uintptr
		makeError uintptr
		user      uintptr
		value     uintptr // out
		valueSize uintptr // out
		deleter   uintptr // out
	}
	keyValuePutArgs struct {
		header
		key       uintptr
		keySize   uintptr
		value     uintptr
		valueSize uintptr
		makeError uintptr
		user      uintptr
	}
)

// The memory behind an address that the plugin gave. The detour keeps vet from taking it for arithmetic on a Go pointer.
func memory(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// word reads a word of the plugin's memory.
func word(p uintptr) uintptr { return *(*uintptr)(memory(p)) }

// foreign views n elements of the plugin's memory.
func foreign[T any](p, n uintptr) []T {
	if p == 0 || n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(memory(p)), n)
}

// copied returns a copy of the plugin's memory.
func copied[T any](p, n uintptr) []T { return append([]T(nil), foreign[T](p, n)...) }

// text returns a copy of the plugin's string.
func text(p, n uintptr) string { return string(foreign[byte](p, n)) }

// first is a pointer for C to the elements of s, nil if there are none.
func first[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
