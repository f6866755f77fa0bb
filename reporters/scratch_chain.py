"""Shell functions for a site: refuse a scratch directory that another user could replace.

A run's files lie in ``<scratch>/gridcast-<uid>``. Another user that could rename a directory on the way there
could put an own one in its place, and have its programs executed, or files elsewhere removed. So each
directory from ``/`` on must belong to root or to this account, and only they may write to it. Exceptions are
directories with the sticky bit, such as ``/tmp``, where a user can rename only entries of its own, and groups
that the account trusts. Each symbolic link on the way must belong to root or to this account as well.

``ls`` examines the entries from ``/`` downwards. An entry that passed can no longer be replaced by another
user, so the path leads to the same directory from then on. ``gridcast-<uid>`` itself is examined from inside
(``cd -P``, then ``.``) and must be private; below it, no other user can change anything.

An access control list cannot grant more than the group's permissions shown by ``ls``, except on file systems
with NFSv4 lists.
"""

from __future__ import annotations

UNSAFE_STATUS = 78  # the exit status of a script that found an unsafe directory
UNSAFE_PREFIX = "gridcast: unsafe scratch: "  # of the line of stderr that gives the reason
TRUSTED_GROUPS_FILE = ".config/gridcast/trusted-groups"  # below the account's home directory
PRIVATE_MODE = "drwx--[-S]---*"  # S: the directory above has the setgid bit

# enter ROOT [make]: checks ROOT and changes to ROOT/gridcast-<uid>, which "make" makes; fails if there is
# none, and exits if ROOT cannot be examined. Sets $uid, $above (the physical path of ROOT) and $own (that of
# gridcast-<uid>).
# enter_below NAME: changes to the directory NAME, unless it is a symbolic link.
# safe_chain PATH: exits unless all directories of the absolute PATH are safe; sets $chain to the path without
# symbolic links.
FUNCTIONS = f"""\
unsafe() {{
  echo "{UNSAFE_PREFIX}$*" >&2
  exit {UNSAFE_STATUS}
}}
is_private_group() {{
  [ "$1" = "$(id -g)" ] && [ "$(id -gn)" = "$(id -un)" ] || return 1
  {{ getent group "$1" || cat /etc/group; }} 2> /dev/null | {{
    while IFS=: read -r _ _ number members; do
      [ "$number" != "$1" ] || case $members in '' | "$(id -un)") exit 0 ;; *) exit 1 ;; esac
    done
    exit 1
  }}
}}
is_trusted_group() {{
  ! is_private_group "$1" || return 0
  trusted=${{HOME:-/nonexistent}}/{TRUSTED_GROUPS_FILE}
  [ -n "$(find "$trusted" -prune -type f -user "$uid" ! -perm -020 ! -perm -002 2> /dev/null)" ] &&
    grep -qx -- "$1" "$trusted"
}}
safe_entry() {{
  about="$1 has mode $2, owner $3, group $4"
  case $3 in
    0 | "$uid") ;;
    *) unsafe "$about: its owner could replace it;" \
      "use a directory whose parents belong to root or user $uid" ;;
  esac
  case $2 in
    l* | d????????[tT]*) ;;
    d???????w*) unsafe "$about: every user could replace its entries;" \
      "take the permission away (chmod o-w), or set the sticky bit (chmod +t)" ;;
    d????w*) is_trusted_group "$4" || unsafe "$about: members of group $4 could replace its entries;" \
      "take the permission away (chmod g-w), set the sticky bit (chmod +t), or trust the group:" \
      "add the line $4 to ~/{TRUSTED_GROUPS_FILE}" ;;
    d*) ;;
    *) unsafe "$about: it is no directory" ;;
  esac
}}
safe_chain() {{
  chain=$1 links=0
  while :; do
    rest=$chain chain= link=
    set -- /
    while [ -n "$rest" ]; do
      name=${{rest%%/*}} rest=${{rest#"${{rest%%/*}}"}}
      rest=${{rest#/}}
      [ -z "$name" ] || {{ chain=$chain/$name; set -- "$@" "$chain"; }}
    done
    complete=true
    listing=$(LC_ALL=C ls -ldn "$@") || complete=false
    [ -n "$listing" ] || exit 2
    while read -r mode _ owner group _; do
      safe_entry "$1" "$mode" "$owner" "$group"
      case $mode in l*) link=$1; break ;; esac
      shift
    done << LISTING
$listing
LISTING
    [ -n "$link" ] || "$complete" || exit 2
    [ -n "$link" ] || return 0
    links=$((links + 1))
    [ "$links" -le 40 ] || unsafe "$link is one of too many symbolic links"
    target=$(readlink "$link") || exit 2
    case $target in /*) ;; *) target=${{link%/*}}/$target ;; esac
    chain=$target${{chain#"$link"}}
  done
}}
enter_below() {{
  parent=${{PWD%/}}
  cd -P "./$1" 2> /dev/null || return 1
  [ "$PWD" = "$parent/$1" ] || unsafe "$parent/$1 is a symbolic link to $PWD; remove it"
}}
enter() {{
  uid=$(id -u)
  safe_chain "$1"
  cd -P "${{chain:-/}}" || exit 2
  above=$PWD own=${{PWD%/}}/gridcast-$uid
  is_there() {{ [ -e "gridcast-$uid" ] || [ -L "gridcast-$uid" ]; }}
  [ "$2" != make ] || mkdir -m 700 "gridcast-$uid" 2> /dev/null || is_there ||
    mkdir -m 700 "gridcast-$uid" || exit 2
  is_there || return 1
  entered=.
  enter_below "gridcast-$uid" || entered=gridcast-$uid
  read -r mode _ owner group _ << LISTING
$(LC_ALL=C ls -ldn "$entered")
LISTING
  case $entered:$mode:$owner in
    .:{PRIVATE_MODE}:"$uid") ;;
    *) unsafe "$own has mode $mode, owner $owner, group $group: expected a directory of user $uid with mode" \
      "drwx------; remove it, or use another scratch directory" ;;
  esac
}}
"""
# check ROOT: fails if ROOT is unsafe or cannot be examined, and prints the reason; makes nothing.
CHECK = f"""\
{FUNCTIONS}
check() {{
  (enter "$1") || [ "$?" -eq 1 ]
}}
"""
