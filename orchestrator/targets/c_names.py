"""Names of C libraries, which generated code cannot reuse.

In C++ a namespace cannot have the name of a function, type or variable that a header
declares outside of namespaces, and nothing can have the name of a macro. The tables
have the names that the headers of C (to C23), POSIX and glibc declare, and the names of
these headers, as far as a profile could use them.
"""

from __future__ import annotations

import re

_MATH_TEXT = """
acos acosh asin asinh atan atan2 atanh cabs cacos cacosh canonicalize carg casin casinh
catan catanh cbrt ccos ccosh ceil cexp cimag clog clog10 conj copysign cos cosh cpow
cproj creal csin csinh csqrt ctan ctanh drem erf erfc exp exp10 exp2 expm1 fabs fdim
finite floor fma fmax fmaximum fmaximum_mag fmaximum_mag_num fmaximum_num fmaxmag fmin
fminimum fminimum_mag fminimum_mag_num fminimum_num fminmag fmod frexp fromfp fromfpx
gamma getpayload hypot ilogb j0 j1 jn ldexp lgamma llogb llrint llround log log10 log1p
log2 logb lrint lround modf nan nearbyint nextafter nextdown nexttoward nextup pow
remainder remquo rint round roundeven scalb scalbln scalbn setpayload setpayloadsig
significand sin sincos sinh sqrt tan tanh tgamma totalorder totalordermag trunc ufromfp
ufromfpx y0 y1 yn
"""
_MATH = frozenset(_MATH_TEXT.split())
"""Functions that are there for each floating-point type."""

_MACROS_TEXT = """
alloca assert assert_perror atomic_init basename be16toh be32toh be64toh complex
d_fileno errno fpclassify h_addr h_errno htobe16 htobe32 htobe64 htole16 htole32 htole64
ifa_broadaddr ifa_dstaddr ifc_buf ifc_req ifr_addr ifr_bandwidth ifr_broadaddr ifr_data
ifr_dstaddr ifr_flags ifr_hwaddr ifr_ifindex ifr_map ifr_metric ifr_mtu ifr_name
ifr_netmask ifr_newname ifr_qlen ifr_slave imaginary isalnum isalpha isascii isblank
iscntrl isdigit isfinite isgraph isgreater isgreaterequal isinf isless islessequal
islessgreater islower isnan isnormal isprint ispunct isspace issubnormal isunordered
isupper isxdigit kill_dependency le16toh le32toh le64toh major makedev math_errhandling
minor msg_cbytes noreturn offsetof s6_addr s6_addr16 s6_addr32 sa_handler sa_sigaction
sched_priority setjmp si_addr si_addr_lsb si_arch si_band si_call_addr si_fd si_int
si_lower si_overrun si_pid si_pkey si_ptr si_status si_stime si_syscall si_timerid
si_uid si_upper si_utime si_value sigev_notify_attributes sigev_notify_function sigmask
signbit sigsetjmp st_atime st_ctime st_mtime stderr stdin stdout strdupa strndupa
timeradd timerclear timercmp timerisset timersub toascii unreachable va_arg va_copy
va_end va_start
"""
_MACROS = frozenset(_MACROS_TEXT.split())

_GLOBAL_TEXT = """
a64l abort abs accept accept4 access acct addrinfo adjtime aio_cancel aio_error
aio_fsync aio_init aio_read aio_return aio_suspend aio_write aiocb aioinit alarm
aligned_alloc alphasort arc4random arc4random_buf arc4random_uniform asctime asprintf
at_quick_exit atexit atof atoi atol atoll atomic_flag_clear_explicit
atomic_flag_test_and_set atomic_flag_test_and_set_explicit atomic_is_lock_free
atomic_signal_fence atomic_thread_fence bcmp bcopy bind bindresvport bindresvport6 brk
bsearch btowc bzero c16rtomb c32rtomb c8rtomb call_once calloc canonicalize_file_name
catclose catgets catopen cfgetispeed cfgetospeed cfmakeraw cfsetispeed cfsetospeed
cfsetspeed chdir chmod chown chroot clearenv clearerr clock clock_adjtime
clock_getcpuclockid clock_getres clock_gettime clock_nanosleep clock_settime clone close
close_range closedir closefrom closelog cmsghdr cnd_broadcast cnd_destroy cnd_init
cnd_signal cnd_timedwait cnd_wait confstr connect copy_file_range crc32 creat crypt
ctermid ctime cuserid daddl daemon daylight ddivl dfmal difftime dirent dirfd dirname
div dl_find_object dladdr dladdr1 dlclose dlerror dlinfo dlmopen dlopen dlsym dlvsym
dmull dprintf drand48 drand48_data dsqrtl dsubl dup dup2 dup3 duplocale dysize eaccess
ecvt endgrent endhostent endnetent endnetgrent endorder endprotoent endpwent endrpcent
endservent endusershell entry environ erand48 err error error_at_line
error_message_count error_one_per_line error_print_progname errx euidaccess execl execle
execlp execv execve execveat execvp execvpe exit explicit_bzero f_owner_ex faccessat
fadd faddl fallocate fchdir fchmod fchmodat fchown fchownat fclose fcloseall fcntl fcvt
fd_mask fd_set fdatasync fdiv fdivl fdopen fdopendir feclearexcept fedisableexcept
feenableexcept fegetenv fegetexcept fegetexceptflag fegetmode fegetround feholdexcept
feof feraiseexcept ferror fesetenv fesetexcept fesetexceptflag fesetmode fesetround
fetestexcept fetestexceptflag feupdateenv fexecve fflush ffma ffmal ffs ffsl ffsll fgetc
fgetgrent fgetpos fgetpwent fgets fgetwc fgetws file_handle fileno flock flockfile fls
fmemopen fmul fmull fnmatch fopen fopencookie fork fpathconf fprintf fputc fputs fputwc
fputws fread free free_aligned_sized free_sized freeaddrinfo freelocale freopen fscanf
fseek fseeko fsetpos fsqrt fsqrtl fstat fstatat fstatvfs fsub fsubl fsync ftell ftello
ftok ftruncate ftrylockfile ftw funlockfile futimens futimes futimesat fwide fwprintf
fwrite fwscanf gai_cancel gai_error gai_strerror gai_suspend gaicb gcvt
get_current_dir_name getaddrinfo getaddrinfo_a getc getchar getcontext getcpu getcwd
getdate getdate_err getdelim getdents64 getdirentries getdomainname getdtablesize
getegid getentropy getenv geteuid getgid getgrent getgrgid getgrnam getgrouplist
getgroups gethostbyaddr gethostbyname gethostbyname2 gethostent gethostid gethostname
getipv4sourcefilter getitimer getline getloadavg getlogin getnameinfo getnetbyaddr
getnetbyname getnetent getnetgrent getopt getpagesize getpass getpeername getpgid
getpgrp getpid getppid getpriority getprotobyname getprotobynumber getprotoent getpt
getpw getpwent getpwnam getpwuid getresgid getresuid getrlimit getrpcbyname
getrpcbynumber getrpcent getrusage getservbyname getservbyport getservent getsid
getsockname getsockopt getsourcefilter getsubopt gettid gettimeofday getuid getumask
getusershell getw getwc getwchar getwd glob glob_pattern_p globfree gmtime gnu_dev_major
gnu_dev_makedev gnu_dev_minor grantpt group group_filter group_member group_req
group_source_req gsignal hcreate hdestroy herror hostent hsearch hsearch_data hstrerror
htonl htons iconv iconv_close iconv_open if_freenameindex if_indextoname if_nameindex
if_nametoindex iface ifaddr ifconf ifmap ifreq imaxabs imaxdiv in6_addr in6_pktinfo
in6addr_any in6addr_loopback in_addr in_pktinfo index inet6_opt_append inet6_opt_find
inet6_opt_finish inet6_opt_get_val inet6_opt_init inet6_opt_next inet6_opt_set_val
inet6_option_alloc inet6_option_append inet6_option_find inet6_option_init
inet6_option_next inet6_option_space inet6_rth_add inet6_rth_getaddr inet6_rth_init
inet6_rth_reverse inet6_rth_segments inet6_rth_space inet_addr inet_aton inet_lnaof
inet_makeaddr inet_net_ntop inet_net_pton inet_neta inet_netof inet_network
inet_nsap_addr inet_nsap_ntoa inet_ntoa inet_ntop inet_pton initgroups initstate innetgr
insque ioctl iovec ip6_mtuinfo ip_mreq ip_mreq_source ip_mreqn ip_msfilter ip_opts
ipc_perm ipv6_mreq iruserok iruserok_af isatty iscanonical isctype iseqsig isfdtype
isinff isinfl isnanf isnanl issignaling iswalnum iswalpha iswblank iswcntrl iswctype
iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit iszero
itimerspec itimerval itoa jmp_buf jrand48 kill killpg l64a labs lchmod lchown lcong48
lconv ldiv leaf lfind lgamma_r lgammaf32_r lgammaf32x_r lgammaf64_r lgammaf64x_r
lgammaf_r lgammal_r linger link link_map linkat lio_listio listen llabs lldiv localeconv
localtime lockf longjmp lrand48 lsearch lseek lstat lutimes madvise main makecontext
malloc mblen mbrlen mbrtoc16 mbrtoc32 mbrtoc8 mbrtowc mbsinit mbsnrtowcs mbsrtowcs
mbstowcs mbtowc memalignment memccpy memchr memcmp memcpy memfd_create memfrob memmem
memmove mempcpy memrchr memset memset_explicit mincore mkdir mkdirat mkdtemp mkfifo
mkfifoat mknod mknodat mkostemp mkostemps mkstemp mkstemps mktemp mktime mlock mlock2
mlockall mmap mmsghdr mprotect mq_attr mq_close mq_getattr mq_notify mq_open mq_receive
mq_send mq_setattr mq_timedreceive mq_timedsend mq_unlink mrand48 mremap msgbuf msgctl
msgget msghdr msginfo msgrcv msgsnd msqid_ds msync mtx_destroy mtx_init mtx_lock
mtx_plain mtx_recursive mtx_timed mtx_timedlock mtx_trylock mtx_unlock munlock
munlockall munmap name_to_handle_at nanosleep netent newlocale nftw nice nl_catd nl_item
nl_langinfo nrand48 ntohl ntohs obstack obstack_printf obstack_vprintf on_exit once_flag
open open_by_handle_at open_memstream open_wmemstream openat opendir openlog optarg
opterr optind optopt osockaddr passwd pathconf pause pclose perror pipe pipe2 pkey_alloc
pkey_free pkey_get pkey_mprotect pkey_set poll pollfd popen postorder ppoll pread preadv
preadv2 preadv64v2 preorder printf prlimit process_madvise process_mrelease
process_vm_readv process_vm_writev profil program_invocation_name
program_invocation_short_name protoent pselect psiginfo psignal ptsname putc putchar
putenv putgrent putpwent puts putw putwc putwchar pwrite pwritev pwritev2 pwritev64v2
qecvt qelem qfcvt qgcvt qsort quick_exit raise rand random random_data rawmemchr rcmd
rcmd_af re_compile_fastmap re_compile_pattern re_match re_match_2 re_pattern_buffer
re_registers re_search re_search_2 re_set_registers re_set_syntax re_syntax_options read
readahead readdir readlink readlinkat readv realloc reallocarray realpath recv recvfrom
recvmmsg recvmsg regcomp regerror regexec regfree remap_file_pages remove remque rename
renameat renameat2 revoke rewind rewinddir rexec rexec_af rindex rlimit rmdir rpcent
rpmatch rresvport rresvport_af rusage ruserok ruserok_af sbrk scandir scandirat scanf
sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getcpu
sched_getparam sched_getscheduler sched_param sched_rr_get_interval sched_setaffinity
sched_setparam sched_setscheduler sched_yield secure_getenv seed48 seekdir select
sem_clockwait sem_close sem_destroy sem_getvalue sem_init sem_open sem_post
sem_timedwait sem_trywait sem_unlink sem_wait sembuf semctl semget semid_ds seminfo
semop semtimedop send sendmmsg sendmsg sendto servent setbuf setbuffer setcontext
setdomainname setegid setenv seteuid setgid setgrent setgroups sethostent sethostid
sethostname setipv4sourcefilter setitimer setlinebuf setlocale setlogin setlogmask
setnetent setnetgrent setns setpgid setpgrp setpriority setproctitle setprotoent
setpwent setregid setresgid setresuid setreuid setrlimit setrpcent setservent setsid
setsockopt setsourcefilter setstate settimeofday setuid setusershell setvbuf shm_info
shm_open shm_unlink shmat shmctl shmdt shmget shmid_ds shminfo shutdown sigabbrev_np
sigaction sigaddset sigaltstack sigandset sigblock sigcontext sigdelset sigdescr_np
sigemptyset sigevent sigfillset siggetmask sighold sigignore siginterrupt sigisemptyset
sigismember sigjmp_buf siglongjmp signal signgam sigorset sigpause sigpending
sigprocmask sigqueue sigrelse sigreturn sigset sigsetmask sigstack sigsuspend
sigtimedwait sigval sigwait sigwaitinfo sleep snprintf sockaddr sockaddr_in sockaddr_in6
sockaddr_storage sockaddr_un sockatmark socket socketpair splice sprintf srand srand48
srandom sscanf ssignal stat statvfs statx statx_timestamp std stpcpy stpncpy strcasecmp
strcasestr strcat strchr strchrnul strcmp strcoll strcpy strcspn strdup strerror
strerrordesc_np strerrorname_np strfmon strfromd strfromf strfromf128 strfromf32
strfromf32x strfromf64x strfroml strfry strftime strlcat strlcpy strlen strncasecmp
strncat strncmp strncpy strndup strnlen strpbrk strptime strrchr strsep strsignal strspn
strstr strtod strtof strtof128 strtof32 strtof32x strtof64x strtoimax strtok strtol
strtold strtoll strtoq strtoul strtoull strtoumax strtouq strverscmp strxfrm swab
swapcontext swprintf swscanf symlink symlinkat sync sync_file_range syncfs syscall
sysconf syslog system sysv_signal tcdrain tcflow tcflush tcgetattr tcgetpgrp tcgetsid
tcsendbreak tcsetattr tcsetpgrp tdelete tdestroy tee telldir tempnam termio termios
tfind tgkill thrd_busy thrd_create thrd_current thrd_detach thrd_equal thrd_error
thrd_exit thrd_join thrd_nomem thrd_sleep thrd_success thrd_timedout thrd_yield time
timegm timelocal timer_create timer_delete timer_getoverrun timer_gettime timer_settime
times timespec timespec_get timespec_getres timeval timex timezone tm tmpfile tmpnam tms
tolower toupper towctrans towlower towupper truncate tsearch tss_create tss_delete
tss_get tss_set ttyname ttyslot twalk tzname tzset u_char u_int u_long u_short ualarm
ucred uint ulong umask uname ungetc ungetwc unlink unlinkat unlockpt unsetenv unshare
uselocale ushort usleep utimbuf utime utimensat utimes utoa utsname va_list valloc
vasprintf vdprintf verr verrx versionsort vfork vfprintf vfscanf vfwprintf vfwscanf
vhangup vmsplice vprintf vscanf vsnprintf vsprintf vsscanf vswprintf vswscanf vsyslog
vwarn vwarnx vwprintf vwscanf wait wait3 wait4 waitid waitpid warn warnx wcpcpy wcpncpy
wcrtomb wcscasecmp wcscat wcschr wcschrnul wcscmp wcscoll wcscpy wcscspn wcsdup wcsftime
wcslen wcsncasecmp wcsncat wcsncmp wcsncpy wcsnlen wcsnrtombs wcspbrk wcsrchr wcsrtombs
wcsspn wcsstr wcstod wcstof wcstof128 wcstof32 wcstof32x wcstof64x wcstoimax wcstok
wcstol wcstold wcstoll wcstombs wcstoq wcstoul wcstoull wcstoumax wcstouq wcswcs
wcswidth wcsxfrm wctob wctomb wctrans wctype wcwidth winsize wmemchr wmemcmp wmemcpy
wmemmove wmempcpy wmemset wordexp wordfree wprintf write writev wscanf
"""
_GLOBAL = frozenset(_GLOBAL_TEXT.split())

# Suffixes by which C23 names a function for float, long double, _FloatN, _FloatNx and
# _DecimalN (ISO/IEC 9899:2024, 7.12): one base name stands for eleven functions.
_OF_A_TYPE = re.compile("(f|l|f16|f32|f64|f128|f32x|f64x|d32|d64|d128)$")
# Suffixes of glibc: large files, reentrant, with a locale, without locks, not portable.
# Two may follow each other (`readdir64_r`), so `_spellings` strips twice.
_VARIANT = re.compile("(64|_r|_l|_unlocked|_np)$")
_FAMILIES = ("posix_", "pthread_")

# A generated `model.h` with one of these names would be found in the place of the
# system's by `#include <...>` of other files. tests/unit/emit/test_header.py compares
# the tables with the headers of the machine (decision 0016).
_HEADERS_TEXT = """
aio alloca ar argp argz assert byteswap complex cpio cpuid cross-stdarg ctype dirent
dlfcn elf endian envz err errno error execinfo fcntl features features-time64 fenv float
fmtmsg fnmatch fstab fts ftw gconv getopt glob gnu-versions grp gshadow iconv ieee754
ifaddrs inttypes iso646 langinfo lastlog libgen libintl limits link locale malloc math
mcheck memory mntent monetary mqueue netdb newlib nl-types nss obstack poll printf
pthread pty pwd reent regex regexp resolv sched search semaphore setjmp sgtty shadow
signal spawn stab stdalign stdarg stdatomic stdbit stdbool stdc-predef stdckdint stddef
stdfix stdint stdint-gcc stdio stdlib stdnoreturn string strings syscall sysexits
syslimits syslog tar termio termios tgmath threads time ttyent uchar ucontext ulimit
unistd unwind utime utmp utmpx values varargs wait wchar wctype wordexp
"""
HEADERS = frozenset(_HEADERS_TEXT.split())
"""Headers of C libraries and compilers, without `.h`."""

_LIBRARIES_TEXT = """
anl atomic c crypt dl g gcc gloss gomp m nosys nsl pthread quadmath rdimon resolv rt ssp
stdc supc util
"""
LIBRARIES = frozenset(_LIBRARIES_TEXT.split())
"""Their libraries, without `lib` and `.a`."""


def is_c_macro(name: str) -> bool:
    """Whether a header of C or POSIX may define a macro of that name."""
    return bool(_spellings(name) & _MACROS) or name.startswith(_FAMILIES)


def is_c_function(name: str) -> bool:
    """Whether a C library may have a function of that name."""
    return bool(_spellings(name) & _GLOBAL) or name.startswith(_FAMILIES)


def is_c_global(name: str) -> bool:
    """Whether a header may declare something of that name outside of namespaces."""
    return (
        is_c_macro(name)
        or is_c_function(name)
        or not _MATH.isdisjoint(_OF_A_TYPE.sub("", n) for n in _spellings(name))
        or not _MATH.isdisjoint(_spellings(name))
        or name.startswith(("f32", "f64"))
        or name.endswith("_t")
    )


def _spellings(name: str) -> set[str]:
    """The name, and those of what it may be a variant of."""
    without = _VARIANT.sub("", name)
    return {name, without, _VARIANT.sub("", without)}
